-- Which process works on what: see package owner. What carries the id of an owner that has no row here is a dead owner's.

-- +goose Up
CREATE TABLE homes (
    id    TEXT NOT NULL PRIMARY KEY,
    epoch BIGINT NOT NULL DEFAULT 0,
    host  TEXT NOT NULL DEFAULT ''
);

CREATE TABLE owners (
    id      TEXT NOT NULL PRIMARY KEY,
    home    TEXT NOT NULL DEFAULT '',
    epoch   BIGINT NOT NULL DEFAULT 0, -- 0: one of several in its home
    since   BIGINT NOT NULL DEFAULT 0,
    until   BIGINT NOT NULL DEFAULT 0,
    command TEXT NOT NULL DEFAULT '',
    pid     BIGINT NOT NULL DEFAULT 0,
    host    TEXT NOT NULL DEFAULT '',
    boot    TEXT NOT NULL DEFAULT ''
);
CREATE INDEX owners_home ON owners (home);

ALTER TABLE sessions ADD COLUMN owner TEXT NOT NULL DEFAULT ''; -- that has it in memory, or died having it there
ALTER TABLE sessions ADD COLUMN home TEXT NOT NULL DEFAULT ''; -- on whose disk it is; '': from before there were homes
ALTER TABLE executions ADD COLUMN owner TEXT NOT NULL DEFAULT '';
ALTER TABLE files ADD COLUMN home TEXT NOT NULL DEFAULT '';
ALTER TABLE turns ADD COLUMN owner TEXT NOT NULL DEFAULT '';
CREATE INDEX sessions_owned ON sessions (owner) WHERE owner <> '';
