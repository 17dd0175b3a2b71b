-- Passwords with the names that people sign in with, invitations, and shared conversations. Of codes the SHA-256 alone is kept.

-- +goose Up
CREATE TABLE passwords (
    user_id TEXT NOT NULL PRIMARY KEY,
    login   TEXT NOT NULL DEFAULT '' UNIQUE, -- the name as it is compared: without regard to case
    hash    TEXT NOT NULL DEFAULT '', -- Argon2id, with its parameters
    changed BIGINT NOT NULL DEFAULT 0
);

CREATE TABLE invitations (
    id      TEXT NOT NULL PRIMARY KEY,
    hash    TEXT NOT NULL DEFAULT '' UNIQUE,
    project TEXT NOT NULL DEFAULT '',
    user_id TEXT NOT NULL DEFAULT '', -- who gets a new password by it, or none
    role    TEXT NOT NULL DEFAULT '',
    name    TEXT NOT NULL DEFAULT '',
    maker   TEXT NOT NULL DEFAULT '',
    created BIGINT NOT NULL DEFAULT 0,
    expires BIGINT NOT NULL DEFAULT 0,
    used    BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX invitations_list ON invitations (project, created, id);
CREATE INDEX invitations_expire ON invitations (expires);

CREATE TABLE shares (
    id           TEXT NOT NULL PRIMARY KEY,
    hash         TEXT NOT NULL DEFAULT '' UNIQUE,
    project      TEXT NOT NULL DEFAULT '',
    user_id      TEXT NOT NULL DEFAULT '',
    conversation TEXT NOT NULL DEFAULT '',
    turn_id      TEXT NOT NULL DEFAULT '',
    title        TEXT NOT NULL DEFAULT '',
    turns        BIGINT NOT NULL DEFAULT 0,
    code         BIGINT NOT NULL DEFAULT 0, -- whether code and output are shown
    size         BIGINT NOT NULL DEFAULT 0,
    created      BIGINT NOT NULL DEFAULT 0,
    expires      BIGINT NOT NULL DEFAULT 0,
    document     BYTEA NOT NULL DEFAULT '' -- what is shown, gzip
);
CREATE INDEX shares_list ON shares (project, created, id);
CREATE INDEX shares_of_conversation ON shares (conversation);
CREATE INDEX shares_expire ON shares (expires) WHERE expires > 0;
