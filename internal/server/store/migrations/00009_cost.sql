-- What turns cost by the prices of their time, in millionths of the currency, and how much of the model's context they took.

-- +goose Up
ALTER TABLE turns ADD COLUMN cost BIGINT NOT NULL DEFAULT 0;
ALTER TABLE turns ADD COLUMN currency TEXT NOT NULL DEFAULT ''; -- none: the cost is not known
ALTER TABLE turns ADD COLUMN context_used BIGINT NOT NULL DEFAULT 0;
ALTER TABLE turns ADD COLUMN context_size BIGINT NOT NULL DEFAULT 0;
ALTER TABLE usage_days ADD COLUMN cost BIGINT NOT NULL DEFAULT 0;
ALTER TABLE usage_days ADD COLUMN currency TEXT NOT NULL DEFAULT '';
