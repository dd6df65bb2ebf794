"""Texts that try to become something else: one corpus, put wherever a stranger's words can reach a page."""

CORPUS = (
    "<script>alert(1)</script>",
    "\"><script>alert('2')</script>",
    "<img src=x onerror=alert(3)>",
    "'\"><svg onload=alert(4)>",
    "</pre></td></table><iframe srcdoc='<script>parent.alert(5)</script>'>",
    "</title></textarea><script>alert(6)</script>",
    "javascript:alert(7)",
    "<a href=javascript:alert(8)>click</a>",
    "<style>*{background:url(//evil.example/9)}</style>",
    "{{ 7 * 7 }}{% include '/etc/passwd' %}${7*7}#{7*7}",
    "<meta http-equiv=refresh content='0;url=//evil.example/11'>",
    "<form action=//evil.example/12><button>",
    "<!--", "]]>", "\\u003cscript\\u003ealert(14)\\u003c/script\\u003e",
    "\u202e<script>alert(15)</script>\u2066",
    "`<script>alert(16)</script>`",
    "<base href=//evil.example/>",
    "<math><mtext><table><mglyph><style><img src onerror=alert(18)>",
)  # fmt: skip

PLANT_JOBS = """
    INSERT INTO jobs (kind, queue, payload, status, attempts, last_error, errors, dedupe_key, finished_at)
    SELECT left(word, 200), left(word, 200), jsonb_build_object(word, word), status, 1, word,
        jsonb_build_array(jsonb_build_object('attempt', word, 'at', word, 'error', word), word),
        left(n || word, 500), CASE WHEN status = 'dead' THEN now() END
    FROM unnest($1::text[]) WITH ORDINALITY AS hostile (word, n)
    CROSS JOIN LATERAL (SELECT CASE n % 3 WHEN 0 THEN 'ready' ELSE 'dead' END AS status) AS half
"""

PLANT_BOOKINGS = """
    INSERT INTO bookings (id, title, starts_at, attendee_name, attendee_email, location, time_zone, locale)
    SELECT left(n || word, 200), word, now() + interval '5 hours', word, word, word, word, word
    FROM unnest($1::text[]) WITH ORDINALITY AS hostile (word, n)
"""

PLANT_REMINDERS = """
    INSERT INTO reminders (booking_id, starts_at, remind_before, channel, status, reason)
    SELECT id, starts_at, interval '24 hours', way.status || left(title, 100), way.status, title
    FROM bookings, unnest('{failed,uncertain,skipped}'::text[]) AS way (status)
"""

PLANT_CHANNELS = """
    INSERT INTO channels (name, suspended_until, reason)
    SELECT word, now() + interval '1 hour', word FROM unnest($1::text[]) AS word
"""

PLANT_TICKS = """
    INSERT INTO ticks (id, started_at, finished_at, source, summary)
    SELECT gen_random_uuid(), now() - n * interval '1 second', now(), word, jsonb_build_object(
        'errors', jsonb_build_array(jsonb_build_object('section', word, 'error', word)),
        'attention', jsonb_build_array(word), 'warnings', jsonb_build_array(word), 'stopped_by', word, 'version', word,
        'tick_id', word
    )
    FROM unnest($1::text[]) WITH ORDINALITY AS hostile (word, n)
"""
PLANTS = (PLANT_JOBS, PLANT_BOOKINGS, PLANT_CHANNELS, PLANT_TICKS)
