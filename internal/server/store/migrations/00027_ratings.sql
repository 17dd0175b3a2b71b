-- +goose Up
ALTER TABLE turns ADD COLUMN rating TEXT NOT NULL DEFAULT ''; -- JSON: what a person says of the answer; or nothing
ALTER TABLE turns ADD COLUMN rated INTEGER NOT NULL DEFAULT 0;
CREATE INDEX turns_rated ON turns (project, created) WHERE rated = 1;
