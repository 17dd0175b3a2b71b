-- How many secrets were taken out of what an execution emitted.

-- +goose Up
ALTER TABLE executions ADD COLUMN redacted TEXT NOT NULL DEFAULT ''; -- JSON: number by kind; or nothing
