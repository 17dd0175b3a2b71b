-- The OCI image that a session begins from.

-- +goose Up
ALTER TABLE sessions ADD COLUMN image TEXT NOT NULL DEFAULT ''; -- JSON: the reference and the digest; or nothing
