-- Code that waits for its user's word, and services of models that are connected while the server runs.

-- +goose Up
ALTER TABLE conversations ADD COLUMN approval TEXT NOT NULL DEFAULT '';
ALTER TABLE turns ADD COLUMN waiting TEXT NOT NULL DEFAULT ''; -- JSON: step, code, since; or nothing
ALTER TABLE executions ADD COLUMN edited BIGINT NOT NULL DEFAULT 0;

-- Services of models that an admin of the server connected. The keys are what the services take, so they cannot be hashes.
CREATE TABLE connections (
    provider TEXT NOT NULL PRIMARY KEY,
    address  TEXT NOT NULL DEFAULT '',
    secret   TEXT NOT NULL DEFAULT '',
    models   TEXT NOT NULL DEFAULT '', -- JSON: names
    usual    TEXT NOT NULL DEFAULT '',
    changed  BIGINT NOT NULL DEFAULT 0
);
