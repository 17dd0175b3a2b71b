-- What of a turn's tokens was cached and thought, and whether the counts are estimates.

-- +goose Up
ALTER TABLE turns ADD COLUMN cached_tokens BIGINT NOT NULL DEFAULT 0;
ALTER TABLE turns ADD COLUMN reasoning_tokens BIGINT NOT NULL DEFAULT 0;
ALTER TABLE turns ADD COLUMN tokens_estimated BIGINT NOT NULL DEFAULT 0;
