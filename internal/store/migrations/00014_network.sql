-- Where the programs of a session may connect to, and what the host adds to that: credentials, which no backup has.

-- +goose Up
ALTER TABLE sessions ADD COLUMN network TEXT NOT NULL DEFAULT ''; -- JSON: allow, deny; or nothing
ALTER TABLE sessions ADD COLUMN secrets TEXT NOT NULL DEFAULT ''; -- JSON: credentials, authority; or nothing
