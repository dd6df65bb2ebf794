"""The statements of the limit: the least that a queue whose jobs survive a crash can do, on the least table for it."""

SCHEMA = """
CREATE TABLE jobs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind text NOT NULL,
    payload jsonb NOT NULL DEFAULT '{}',
    status text NOT NULL DEFAULT 'ready',
    attempts int NOT NULL DEFAULT 0,
    run_at timestamptz NOT NULL DEFAULT now(),
    locked_until timestamptz,
    finished_at timestamptz
);
CREATE INDEX jobs_ready_idx ON jobs (run_at, id) WHERE status = 'ready';
CREATE INDEX jobs_running_idx ON jobs (locked_until) WHERE status = 'running'
"""
CLAIM = """
    WITH picked AS MATERIALIZED (
        SELECT id FROM jobs WHERE status = 'ready' AND run_at <= now()
        ORDER BY run_at, id LIMIT $1 FOR UPDATE SKIP LOCKED
    )
    UPDATE jobs SET status = 'running', attempts = attempts + 1, locked_until = now() + interval '60 s'
    FROM picked WHERE jobs.id = picked.id
    RETURNING jobs.id, jobs.kind, jobs.payload
"""
COMPLETE = """
    UPDATE jobs SET status = 'done', locked_until = NULL, finished_at = now()
    FROM unnest($1::bigint[]) AS finished (id)
    WHERE jobs.id = finished.id AND jobs.status = 'running'
"""
FILL = (
    "INSERT INTO jobs (kind, payload) SELECT 'noop', jsonb_build_object('n', n) FROM generate_series(1, $1::int) AS n"
)
