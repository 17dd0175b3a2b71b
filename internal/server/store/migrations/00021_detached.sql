-- Executions of turns that may outlive their turns, because they wait for results which clients bring.

-- +goose Up
ALTER TABLE executions ADD COLUMN detached BIGINT NOT NULL DEFAULT 0;
