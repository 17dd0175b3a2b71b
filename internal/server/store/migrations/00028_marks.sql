-- +goose Up
ALTER TABLE turns ADD COLUMN marks TEXT NOT NULL DEFAULT ''; -- JSON: what people did after the turn that changes how it is to be read; or nothing
