-- Whose access tokens of an authorization server a key stands for; such a key has no text.

-- +goose Up
ALTER TABLE access_keys ADD COLUMN subject TEXT NOT NULL DEFAULT '';
CREATE INDEX access_keys_subject ON access_keys (subject);
