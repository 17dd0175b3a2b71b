-- The data keys that content is encrypted with, wrapped with an operator's key. No row: nothing is encrypted.

-- +goose Up
CREATE TABLE encryption (
    id   BIGINT NOT NULL PRIMARY KEY, -- 1
    ring TEXT NOT NULL DEFAULT '' -- JSON: the keys
);
