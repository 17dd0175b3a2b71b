-- The stored files that a question came with, so that every browser shows them and a question that is asked again brings them.

-- +goose Up
ALTER TABLE turns ADD COLUMN files TEXT NOT NULL DEFAULT ''; -- JSON: id, name, size of each; or nothing
