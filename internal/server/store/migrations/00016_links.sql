-- Links that show a file of a session, take one, or lead to a port of it, for all who have their code.

-- +goose Up
CREATE TABLE session_links (
    id         TEXT NOT NULL PRIMARY KEY,
    hash       TEXT NOT NULL DEFAULT '' UNIQUE, -- of the code
    project    TEXT NOT NULL DEFAULT '',
    user_id    TEXT NOT NULL DEFAULT '', -- whose rights it has
    key_id     TEXT NOT NULL DEFAULT '', -- by which it was made, and with which it ends
    session_id TEXT NOT NULL DEFAULT '',
    purpose    TEXT NOT NULL DEFAULT '', -- read, write, port
    path       TEXT NOT NULL DEFAULT '',
    port       BIGINT NOT NULL DEFAULT 0,
    open       BIGINT NOT NULL DEFAULT 0, -- the port is open to all, without a code
    wakes      BIGINT NOT NULL DEFAULT 0, -- it loads a session that is paused
    created    BIGINT NOT NULL DEFAULT 0,
    expires    BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX session_links_list ON session_links (session_id, created, id);
CREATE INDEX session_links_expire ON session_links (expires) WHERE expires > 0;
