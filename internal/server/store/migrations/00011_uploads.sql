-- Files that come in pieces, until they are whole.

-- +goose Up
CREATE TABLE uploads (
    id       TEXT NOT NULL PRIMARY KEY,
    project  TEXT NOT NULL DEFAULT '',
    user_id  TEXT NOT NULL DEFAULT '',
    key_id   TEXT NOT NULL DEFAULT '',
    name     TEXT NOT NULL DEFAULT '',
    size     BIGINT NOT NULL DEFAULT 0,
    received BIGINT NOT NULL DEFAULT 0, -- bytes of it that are on the disk
    file     TEXT NOT NULL DEFAULT '', -- the stored file that it has become, or none
    created  BIGINT NOT NULL DEFAULT 0,
    expires  BIGINT NOT NULL DEFAULT 0,
    home     TEXT NOT NULL DEFAULT ''
);
CREATE INDEX uploads_open ON uploads (project, file, size);
CREATE INDEX uploads_expire ON uploads (expires);
