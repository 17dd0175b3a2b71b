-- What a fork of a conversation, and each of its turns that it did not ask itself, is a copy of.

-- +goose Up
ALTER TABLE conversations ADD COLUMN origin TEXT NOT NULL DEFAULT ''; -- JSON: conversation, turn; or nothing
ALTER TABLE turns ADD COLUMN origin TEXT NOT NULL DEFAULT ''; -- JSON: turn, session; or nothing
