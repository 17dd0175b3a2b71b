-- +goose Up
ALTER TABLE turns ADD COLUMN tries TEXT NOT NULL DEFAULT ''; -- JSON: what the turn has to do with tries; or nothing
