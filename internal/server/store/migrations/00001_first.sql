-- One text for SQLite and PostgreSQL. Times are microseconds since 1970, 0 is none. Flags are 0 or 1. Lists and maps are JSON as text.
-- BYTEA compares byte by byte on both, whatever the locale of the database, which is why what is looked up by its beginning is BYTEA.
-- Every column has a default, so that a backup from before the column was there can be restored.

-- +goose Up
CREATE TABLE users (
    id      TEXT NOT NULL PRIMARY KEY,
    name    TEXT NOT NULL DEFAULT '' UNIQUE,
    admin   BIGINT NOT NULL DEFAULT 0,
    created BIGINT NOT NULL DEFAULT 0
);

CREATE TABLE projects (
    id      TEXT NOT NULL PRIMARY KEY,
    name    TEXT NOT NULL DEFAULT '' UNIQUE,
    created BIGINT NOT NULL DEFAULT 0,
    quota   TEXT NOT NULL DEFAULT ''
);

CREATE TABLE members (
    project TEXT NOT NULL DEFAULT '' REFERENCES projects (id) ON DELETE CASCADE,
    user_id TEXT NOT NULL DEFAULT '' REFERENCES users (id) ON DELETE CASCADE,
    role    TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (project, user_id)
);
CREATE INDEX members_user ON members (user_id);

CREATE TABLE access_keys (
    id      TEXT NOT NULL PRIMARY KEY,
    project TEXT NOT NULL DEFAULT '',
    user_id TEXT NOT NULL DEFAULT '',
    name    TEXT NOT NULL DEFAULT '',
    hash    BYTEA NOT NULL DEFAULT '',
    last4   TEXT NOT NULL DEFAULT '',
    scopes  TEXT NOT NULL DEFAULT '',
    created BIGINT NOT NULL DEFAULT 0,
    expires BIGINT NOT NULL DEFAULT 0,
    used    BIGINT NOT NULL DEFAULT 0,
    revoked BIGINT NOT NULL DEFAULT 0,
    quota   TEXT NOT NULL DEFAULT ''
);
CREATE INDEX access_keys_project ON access_keys (project, created, id);
CREATE INDEX access_keys_user ON access_keys (user_id);

CREATE TABLE sessions (
    id         TEXT NOT NULL PRIMARY KEY,
    project    TEXT NOT NULL DEFAULT '',
    user_id    TEXT NOT NULL DEFAULT '',
    key_id     TEXT NOT NULL DEFAULT '',
    name       TEXT NOT NULL DEFAULT '',
    name_key   BYTEA NOT NULL DEFAULT '', -- the beginning of the name
    metadata   TEXT NOT NULL DEFAULT '',
    state      TEXT NOT NULL DEFAULT '',
    gone       BIGINT NOT NULL DEFAULT 0, -- whether state is deleted
    reason     TEXT NOT NULL DEFAULT '',
    created    BIGINT NOT NULL DEFAULT 0,
    used       BIGINT NOT NULL DEFAULT 0,
    expires    BIGINT NOT NULL DEFAULT 0,
    idle       BIGINT NOT NULL DEFAULT 0,
    packages   TEXT NOT NULL DEFAULT '',
    memory     BIGINT NOT NULL DEFAULT 0,
    cpus       DOUBLE PRECISION NOT NULL DEFAULT 0,
    executions BIGINT NOT NULL DEFAULT 0,
    disk       BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX sessions_list ON sessions (project, gone, created, id);
CREATE INDEX sessions_in_state ON sessions (project, state, created, id);
CREATE INDEX sessions_of_user ON sessions (project, user_id, created, id);
CREATE INDEX sessions_named ON sessions (project, name_key);
CREATE INDEX sessions_used ON sessions (state, used);
CREATE INDEX sessions_disk ON sessions (project, gone, disk);
CREATE INDEX sessions_expire ON sessions (state, expires);

-- The metadata of sessions as it is looked up by: pair is a hash of a name and its value.
CREATE TABLE session_pairs (
    session_id TEXT NOT NULL DEFAULT '' REFERENCES sessions (id) ON DELETE CASCADE,
    project    TEXT NOT NULL DEFAULT '',
    pair       BYTEA NOT NULL DEFAULT '',
    PRIMARY KEY (session_id, pair)
);
CREATE INDEX session_pairs_find ON session_pairs (project, pair, session_id);

CREATE TABLE executions (
    id         TEXT NOT NULL PRIMARY KEY,
    project    TEXT NOT NULL DEFAULT '',
    user_id    TEXT NOT NULL DEFAULT '',
    key_id     TEXT NOT NULL DEFAULT '',
    session_id TEXT NOT NULL DEFAULT '',
    kernel     TEXT NOT NULL DEFAULT '',
    turn_id    TEXT NOT NULL DEFAULT '',
    step       BIGINT NOT NULL DEFAULT 0,
    code       TEXT NOT NULL DEFAULT '',
    state      TEXT NOT NULL DEFAULT '',
    unfinished BIGINT NOT NULL DEFAULT 0, -- whether state is not final
    exit_code  BIGINT NOT NULL DEFAULT 0,
    message    TEXT NOT NULL DEFAULT '',
    lost       TEXT NOT NULL DEFAULT '',
    created    BIGINT NOT NULL DEFAULT 0,
    started    BIGINT NOT NULL DEFAULT 0,
    finished   BIGINT NOT NULL DEFAULT 0,
    wall       BIGINT NOT NULL DEFAULT 0,
    cpu        BIGINT NOT NULL DEFAULT 0,
    events     BIGINT NOT NULL DEFAULT 0,
    dropped    BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX executions_list ON executions (project, created, id);
CREATE INDEX executions_of_session ON executions (session_id, created, id);
CREATE INDEX executions_of_turn ON executions (turn_id, created, id);
CREATE INDEX executions_unfinished ON executions (created, id) WHERE unfinished = 1;

CREATE TABLE events (
    stream    TEXT NOT NULL DEFAULT '',
    seq       BIGINT NOT NULL DEFAULT 0,
    execution TEXT NOT NULL DEFAULT '',
    step      BIGINT NOT NULL DEFAULT 0,
    at        BIGINT NOT NULL DEFAULT 0,
    body      BYTEA NOT NULL DEFAULT '',
    PRIMARY KEY (stream, seq)
);

CREATE TABLE conversations (
    id         TEXT NOT NULL PRIMARY KEY,
    project    TEXT NOT NULL DEFAULT '',
    user_id    TEXT NOT NULL DEFAULT '',
    session_id TEXT NOT NULL DEFAULT '',
    title      TEXT NOT NULL DEFAULT '',
    model      TEXT NOT NULL DEFAULT '',
    metadata   TEXT NOT NULL DEFAULT '',
    created    BIGINT NOT NULL DEFAULT 0,
    used       BIGINT NOT NULL DEFAULT 0,
    turns      BIGINT NOT NULL DEFAULT 0,
    source     TEXT NOT NULL DEFAULT ''
);
CREATE INDEX conversations_list ON conversations (project, used, id);
CREATE INDEX conversations_of_session ON conversations (project, session_id, used, id);
CREATE INDEX conversations_of_user ON conversations (project, user_id, used, id);
CREATE INDEX conversations_used ON conversations (used);

CREATE TABLE turns (
    id           TEXT NOT NULL PRIMARY KEY,
    project      TEXT NOT NULL DEFAULT '',
    user_id      TEXT NOT NULL DEFAULT '',
    key_id       TEXT NOT NULL DEFAULT '',
    conversation TEXT NOT NULL DEFAULT '',
    parent       TEXT NOT NULL DEFAULT '',
    session_id   TEXT NOT NULL DEFAULT '',
    state        TEXT NOT NULL DEFAULT '',
    unfinished   BIGINT NOT NULL DEFAULT 0,
    model        TEXT NOT NULL DEFAULT '',
    prompt       TEXT NOT NULL DEFAULT '',
    answer       TEXT NOT NULL DEFAULT '',
    reason       TEXT NOT NULL DEFAULT '',
    problem      TEXT NOT NULL DEFAULT '',
    messages     TEXT NOT NULL DEFAULT '',
    calls        TEXT NOT NULL DEFAULT '',
    input_tokens BIGINT NOT NULL DEFAULT 0,
    output_tokens BIGINT NOT NULL DEFAULT 0,
    steps        BIGINT NOT NULL DEFAULT 0,
    created      BIGINT NOT NULL DEFAULT 0,
    finished     BIGINT NOT NULL DEFAULT 0,
    events       BIGINT NOT NULL DEFAULT 0,
    surface      TEXT NOT NULL DEFAULT '', -- what the surface that made the turn keeps with it
    hidden       BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX turns_list ON turns (conversation, created, id);
CREATE INDEX turns_after ON turns (parent);
CREATE INDEX turns_unfinished ON turns (created, id) WHERE unfinished = 1;

CREATE TABLE files (
    id      TEXT NOT NULL PRIMARY KEY,
    project TEXT NOT NULL DEFAULT '',
    user_id TEXT NOT NULL DEFAULT '',
    name    TEXT NOT NULL DEFAULT '',
    size    BIGINT NOT NULL DEFAULT 0,
    sha256  TEXT NOT NULL DEFAULT '',
    purpose TEXT NOT NULL DEFAULT '',
    created BIGINT NOT NULL DEFAULT 0,
    expires BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX files_list ON files (project, created, id);
CREATE INDEX files_for ON files (project, purpose, created, id);
CREATE INDEX files_size ON files (project, size);
CREATE INDEX files_content ON files (sha256);
CREATE INDEX files_expire ON files (expires) WHERE expires > 0;

CREATE TABLE usage_days (
    project       TEXT NOT NULL DEFAULT '',
    key_id        TEXT NOT NULL DEFAULT '', -- '': the whole project
    day           TEXT NOT NULL DEFAULT '',
    executions    BIGINT NOT NULL DEFAULT 0,
    wall_seconds  DOUBLE PRECISION NOT NULL DEFAULT 0,
    cpu_seconds   DOUBLE PRECISION NOT NULL DEFAULT 0,
    turns         BIGINT NOT NULL DEFAULT 0,
    input_tokens  BIGINT NOT NULL DEFAULT 0,
    output_tokens BIGINT NOT NULL DEFAULT 0,
    upload_bytes  BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (project, key_id, day)
);

CREATE TABLE audit_rows (
    id      TEXT NOT NULL PRIMARY KEY,
    at      BIGINT NOT NULL DEFAULT 0,
    project TEXT NOT NULL DEFAULT '',
    user_id TEXT NOT NULL DEFAULT '',
    key_id  TEXT NOT NULL DEFAULT '',
    action  TEXT NOT NULL DEFAULT '',
    target  TEXT NOT NULL DEFAULT '',
    outcome TEXT NOT NULL DEFAULT '',
    detail  TEXT NOT NULL DEFAULT '',
    request TEXT NOT NULL DEFAULT '',
    ip      TEXT NOT NULL DEFAULT '',
    agent   TEXT NOT NULL DEFAULT ''
);
CREATE INDEX audit_rows_list ON audit_rows (project, at, id);
CREATE INDEX audit_rows_at ON audit_rows (at, id);

-- A text that can be searched, and the words in it.
CREATE TABLE documents (
    id           BIGINT NOT NULL PRIMARY KEY,
    project      TEXT NOT NULL DEFAULT '',
    at           BIGINT NOT NULL DEFAULT 0,
    conversation TEXT NOT NULL DEFAULT '',
    turn_id      TEXT NOT NULL DEFAULT '',
    execution    TEXT NOT NULL DEFAULT '',
    session_id   TEXT NOT NULL DEFAULT '',
    field        TEXT NOT NULL DEFAULT '',
    content      TEXT NOT NULL DEFAULT ''
);
CREATE INDEX documents_list ON documents (project, at, id);
CREATE INDEX documents_of_conversation ON documents (conversation);
CREATE INDEX documents_of_turn ON documents (turn_id);
CREATE INDEX documents_of_execution ON documents (execution);

CREATE TABLE words (
    document BIGINT NOT NULL DEFAULT 0 REFERENCES documents (id) ON DELETE CASCADE,
    word     BYTEA NOT NULL DEFAULT '',
    project  TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (document, word)
);
CREATE INDEX words_find ON words (project, word, document);
