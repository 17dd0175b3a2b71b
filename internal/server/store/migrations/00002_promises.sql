-- What an idempotency key stands for: the same request is answered with the same thing, also by the next server.

-- +goose Up
CREATE TABLE promises (
    project TEXT NOT NULL DEFAULT '',
    word    TEXT NOT NULL DEFAULT '',
    print   TEXT NOT NULL DEFAULT '',
    thing   TEXT NOT NULL DEFAULT '',
    until   BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (project, word)
);
CREATE INDEX promises_until ON promises (until);
