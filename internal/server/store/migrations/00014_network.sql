-- Where the programs of a session may connect to.

-- +goose Up
ALTER TABLE sessions ADD COLUMN network TEXT NOT NULL DEFAULT ''; -- JSON: allow, deny; or nothing
