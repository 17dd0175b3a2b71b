-- When a session was last saved, and what it lost since its owner was last told (JSON, or nothing).

-- +goose Up
ALTER TABLE sessions ADD COLUMN saved BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN rollback TEXT NOT NULL DEFAULT '';
