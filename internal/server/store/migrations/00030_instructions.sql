-- +goose Up
ALTER TABLE projects ADD COLUMN instructions TEXT NOT NULL DEFAULT ''; -- what models are asked to do in all conversations of the project
