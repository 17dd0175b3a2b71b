-- How the turns of a project with a model went, day by day: figures without content, which stay when conversations are deleted.

-- +goose Up
CREATE TABLE answer_days (
    project          TEXT NOT NULL DEFAULT '',
    day              TEXT NOT NULL DEFAULT '',
    model            TEXT NOT NULL DEFAULT '',
    turns            BIGINT NOT NULL DEFAULT 0,
    completed        BIGINT NOT NULL DEFAULT 0,
    failed           BIGINT NOT NULL DEFAULT 0,
    canceled         BIGINT NOT NULL DEFAULT 0,
    steps            BIGINT NOT NULL DEFAULT 0,
    failed_steps     BIGINT NOT NULL DEFAULT 0,
    repaired         BIGINT NOT NULL DEFAULT 0, -- turns that were completed after a step had failed
    installs         BIGINT NOT NULL DEFAULT 0,
    failed_installs  BIGINT NOT NULL DEFAULT 0,
    input_tokens     BIGINT NOT NULL DEFAULT 0,
    output_tokens    BIGINT NOT NULL DEFAULT 0,
    seconds          DOUBLE PRECISION NOT NULL DEFAULT 0,
    run_seconds      DOUBLE PRECISION NOT NULL DEFAULT 0,
    install_seconds  DOUBLE PRECISION NOT NULL DEFAULT 0,
    within_1         BIGINT NOT NULL DEFAULT 0, -- turns that took at most so many seconds, and more than the column before
    within_2         BIGINT NOT NULL DEFAULT 0,
    within_4         BIGINT NOT NULL DEFAULT 0,
    within_8         BIGINT NOT NULL DEFAULT 0,
    within_16        BIGINT NOT NULL DEFAULT 0,
    within_32        BIGINT NOT NULL DEFAULT 0,
    within_64        BIGINT NOT NULL DEFAULT 0,
    within_128       BIGINT NOT NULL DEFAULT 0,
    within_256       BIGINT NOT NULL DEFAULT 0,
    within_512       BIGINT NOT NULL DEFAULT 0,
    longer           BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (project, day, model)
);
