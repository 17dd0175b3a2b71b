-- Folders of a project that outlive sessions and that several have at the same time.

-- +goose Up
CREATE TABLE volumes (
    id      TEXT NOT NULL PRIMARY KEY,
    project TEXT NOT NULL DEFAULT '',
    user_id TEXT NOT NULL DEFAULT '', -- who made it
    key_id  TEXT NOT NULL DEFAULT '', -- by which it was made
    name    TEXT NOT NULL DEFAULT '',
    created BIGINT NOT NULL DEFAULT 0,
    size    BIGINT NOT NULL DEFAULT 0, -- bytes, as it was counted last
    home    TEXT NOT NULL DEFAULT '' -- on whose disk it is
);
CREATE UNIQUE INDEX volumes_name ON volumes (project, name);
ALTER TABLE sessions ADD COLUMN volumes TEXT NOT NULL DEFAULT ''; -- JSON: those that the session has; or nothing
