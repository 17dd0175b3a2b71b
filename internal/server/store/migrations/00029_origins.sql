-- +goose Up
ALTER TABLE sessions ADD COLUMN origin TEXT NOT NULL DEFAULT ''; -- JSON: of a fork, which session it goes on from; or nothing
