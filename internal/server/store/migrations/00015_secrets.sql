-- What the host adds to what the programs of a session send: credentials, which no backup has.

-- +goose Up
ALTER TABLE sessions ADD COLUMN secrets TEXT NOT NULL DEFAULT ''; -- JSON: credentials, authority; or nothing
