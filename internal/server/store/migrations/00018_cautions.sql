-- What a look at the code of an execution found before it ran.

-- +goose Up
ALTER TABLE executions ADD COLUMN cautions TEXT NOT NULL DEFAULT ''; -- JSON: rule, line, what; or nothing
