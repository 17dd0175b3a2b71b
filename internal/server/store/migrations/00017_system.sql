-- How much root of a session may change outside of the workspace.

-- +goose Up
ALTER TABLE sessions ADD COLUMN system BIGINT NOT NULL DEFAULT 0; -- bytes; 0: the session has no root
