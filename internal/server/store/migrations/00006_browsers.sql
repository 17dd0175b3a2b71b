-- Browsers that are signed in, and codes that sign one in, once. Of both the SHA-256 alone is kept.

-- +goose Up
CREATE TABLE browsers (
    id      TEXT NOT NULL PRIMARY KEY,
    project TEXT NOT NULL DEFAULT '',
    user_id TEXT NOT NULL DEFAULT '',
    key_id  TEXT NOT NULL DEFAULT '', -- that it was signed in with, or none
    hash    BYTEA NOT NULL DEFAULT '',
    created BIGINT NOT NULL DEFAULT 0,
    used    BIGINT NOT NULL DEFAULT 0,
    expires BIGINT NOT NULL DEFAULT 0,
    revoked BIGINT NOT NULL DEFAULT 0,
    agent   TEXT NOT NULL DEFAULT '',
    ip      TEXT NOT NULL DEFAULT ''
);
CREATE INDEX browsers_of_user ON browsers (user_id, project, created, id);
CREATE INDEX browsers_expire ON browsers (expires);

CREATE TABLE sign_in_codes (
    id      TEXT NOT NULL PRIMARY KEY, -- the hash
    project TEXT NOT NULL DEFAULT '',
    user_id TEXT NOT NULL DEFAULT '',
    created BIGINT NOT NULL DEFAULT 0,
    expires BIGINT NOT NULL DEFAULT 0,
    used    BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX sign_in_codes_expire ON sign_in_codes (expires);
CREATE INDEX sign_in_codes_user ON sign_in_codes (user_id);
