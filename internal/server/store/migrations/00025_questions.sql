-- The queues of conversations: questions that wait until the turns before them have ended.

-- +goose Up
CREATE TABLE questions (
    id           TEXT NOT NULL PRIMARY KEY,
    project      TEXT NOT NULL DEFAULT '',
    user_id      TEXT NOT NULL DEFAULT '', -- whose rights it is asked with
    key_id       TEXT NOT NULL DEFAULT '',
    scopes       TEXT NOT NULL DEFAULT '', -- JSON: what that caller was limited to; or nothing
    conversation TEXT NOT NULL DEFAULT '',
    place        BIGINT NOT NULL DEFAULT 0, -- in the queue
    turn         TEXT NOT NULL DEFAULT '', -- JSON: what is asked, with its settings
    files        TEXT NOT NULL DEFAULT '', -- JSON
    size         BIGINT NOT NULL DEFAULT 0, -- bytes of turn
    created      BIGINT NOT NULL DEFAULT 0,
    changed      BIGINT NOT NULL DEFAULT 0,
    held         TEXT NOT NULL DEFAULT '', -- JSON: why it could not be asked; or nothing
    stays        BIGINT NOT NULL DEFAULT 0, -- there is something in held
    again        BIGINT NOT NULL DEFAULT 0 -- when that is tried again by itself
);
CREATE UNIQUE INDEX questions_queue ON questions (conversation, place);
CREATE INDEX questions_project ON questions (project);
