-- Tables of version 3 as pg_dump --schema=dragoman --inserts wrote them, without its comments and settings.
CREATE SCHEMA dragoman;
CREATE TABLE dragoman.about (
    one boolean NOT NULL,
    version integer NOT NULL,
    generation text NOT NULL,
    changes bigint NOT NULL,
    newest bigint NOT NULL,
    CONSTRAINT about_one_check CHECK (one)
);
CREATE TABLE dragoman.claim (
    agent text NOT NULL COLLATE pg_catalog."C",
    session text NOT NULL COLLATE pg_catalog."C",
    principal text NOT NULL,
    agent_id text NOT NULL COLLATE pg_catalog."C",
    cwd text NOT NULL,
    node text NOT NULL COLLATE pg_catalog."C",
    number bigint NOT NULL
);
ALTER TABLE dragoman.claim ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME dragoman.claim_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE dragoman.connection (
    id text NOT NULL COLLATE pg_catalog."C",
    principal text NOT NULL,
    node text NOT NULL COLLATE pg_catalog."C",
    incarnation bigint NOT NULL,
    received bigint NOT NULL,
    newest text NOT NULL,
    noted timestamp with time zone NOT NULL
);
CREATE TABLE dragoman.entry (
    session text NOT NULL COLLATE pg_catalog."C",
    sequence bigint NOT NULL,
    kind text NOT NULL,
    body bytea NOT NULL,
    fence bigint DEFAULT 0 NOT NULL
)
PARTITION BY HASH (session);
CREATE TABLE dragoman.entry_0 (
    session text CONSTRAINT entry_session_not_null NOT NULL COLLATE pg_catalog."C",
    sequence bigint CONSTRAINT entry_sequence_not_null NOT NULL,
    kind text CONSTRAINT entry_kind_not_null NOT NULL,
    body bytea CONSTRAINT entry_body_not_null NOT NULL,
    fence bigint DEFAULT 0 CONSTRAINT entry_fence_not_null NOT NULL
);
CREATE TABLE dragoman.entry_1 (
    session text CONSTRAINT entry_session_not_null NOT NULL COLLATE pg_catalog."C",
    sequence bigint CONSTRAINT entry_sequence_not_null NOT NULL,
    kind text CONSTRAINT entry_kind_not_null NOT NULL,
    body bytea CONSTRAINT entry_body_not_null NOT NULL,
    fence bigint DEFAULT 0 CONSTRAINT entry_fence_not_null NOT NULL
);
CREATE TABLE dragoman.entry_10 (
    session text CONSTRAINT entry_session_not_null NOT NULL COLLATE pg_catalog."C",
    sequence bigint CONSTRAINT entry_sequence_not_null NOT NULL,
    kind text CONSTRAINT entry_kind_not_null NOT NULL,
    body bytea CONSTRAINT entry_body_not_null NOT NULL,
    fence bigint DEFAULT 0 CONSTRAINT entry_fence_not_null NOT NULL
);
CREATE TABLE dragoman.entry_11 (
    session text CONSTRAINT entry_session_not_null NOT NULL COLLATE pg_catalog."C",
    sequence bigint CONSTRAINT entry_sequence_not_null NOT NULL,
    kind text CONSTRAINT entry_kind_not_null NOT NULL,
    body bytea CONSTRAINT entry_body_not_null NOT NULL,
    fence bigint DEFAULT 0 CONSTRAINT entry_fence_not_null NOT NULL
);
CREATE TABLE dragoman.entry_12 (
    session text CONSTRAINT entry_session_not_null NOT NULL COLLATE pg_catalog."C",
    sequence bigint CONSTRAINT entry_sequence_not_null NOT NULL,
    kind text CONSTRAINT entry_kind_not_null NOT NULL,
    body bytea CONSTRAINT entry_body_not_null NOT NULL,
    fence bigint DEFAULT 0 CONSTRAINT entry_fence_not_null NOT NULL
);
CREATE TABLE dragoman.entry_13 (
    session text CONSTRAINT entry_session_not_null NOT NULL COLLATE pg_catalog."C",
    sequence bigint CONSTRAINT entry_sequence_not_null NOT NULL,
    kind text CONSTRAINT entry_kind_not_null NOT NULL,
    body bytea CONSTRAINT entry_body_not_null NOT NULL,
    fence bigint DEFAULT 0 CONSTRAINT entry_fence_not_null NOT NULL
);
CREATE TABLE dragoman.entry_14 (
    session text CONSTRAINT entry_session_not_null NOT NULL COLLATE pg_catalog."C",
    sequence bigint CONSTRAINT entry_sequence_not_null NOT NULL,
    kind text CONSTRAINT entry_kind_not_null NOT NULL,
    body bytea CONSTRAINT entry_body_not_null NOT NULL,
    fence bigint DEFAULT 0 CONSTRAINT entry_fence_not_null NOT NULL
);
CREATE TABLE dragoman.entry_15 (
    session text CONSTRAINT entry_session_not_null NOT NULL COLLATE pg_catalog."C",
    sequence bigint CONSTRAINT entry_sequence_not_null NOT NULL,
    kind text CONSTRAINT entry_kind_not_null NOT NULL,
    body bytea CONSTRAINT entry_body_not_null NOT NULL,
    fence bigint DEFAULT 0 CONSTRAINT entry_fence_not_null NOT NULL
);
CREATE TABLE dragoman.entry_2 (
    session text CONSTRAINT entry_session_not_null NOT NULL COLLATE pg_catalog."C",
    sequence bigint CONSTRAINT entry_sequence_not_null NOT NULL,
    kind text CONSTRAINT entry_kind_not_null NOT NULL,
    body bytea CONSTRAINT entry_body_not_null NOT NULL,
    fence bigint DEFAULT 0 CONSTRAINT entry_fence_not_null NOT NULL
);
CREATE TABLE dragoman.entry_3 (
    session text CONSTRAINT entry_session_not_null NOT NULL COLLATE pg_catalog."C",
    sequence bigint CONSTRAINT entry_sequence_not_null NOT NULL,
    kind text CONSTRAINT entry_kind_not_null NOT NULL,
    body bytea CONSTRAINT entry_body_not_null NOT NULL,
    fence bigint DEFAULT 0 CONSTRAINT entry_fence_not_null NOT NULL
);
CREATE TABLE dragoman.entry_4 (
    session text CONSTRAINT entry_session_not_null NOT NULL COLLATE pg_catalog."C",
    sequence bigint CONSTRAINT entry_sequence_not_null NOT NULL,
    kind text CONSTRAINT entry_kind_not_null NOT NULL,
    body bytea CONSTRAINT entry_body_not_null NOT NULL,
    fence bigint DEFAULT 0 CONSTRAINT entry_fence_not_null NOT NULL
);
CREATE TABLE dragoman.entry_5 (
    session text CONSTRAINT entry_session_not_null NOT NULL COLLATE pg_catalog."C",
    sequence bigint CONSTRAINT entry_sequence_not_null NOT NULL,
    kind text CONSTRAINT entry_kind_not_null NOT NULL,
    body bytea CONSTRAINT entry_body_not_null NOT NULL,
    fence bigint DEFAULT 0 CONSTRAINT entry_fence_not_null NOT NULL
);
CREATE TABLE dragoman.entry_6 (
    session text CONSTRAINT entry_session_not_null NOT NULL COLLATE pg_catalog."C",
    sequence bigint CONSTRAINT entry_sequence_not_null NOT NULL,
    kind text CONSTRAINT entry_kind_not_null NOT NULL,
    body bytea CONSTRAINT entry_body_not_null NOT NULL,
    fence bigint DEFAULT 0 CONSTRAINT entry_fence_not_null NOT NULL
);
CREATE TABLE dragoman.entry_7 (
    session text CONSTRAINT entry_session_not_null NOT NULL COLLATE pg_catalog."C",
    sequence bigint CONSTRAINT entry_sequence_not_null NOT NULL,
    kind text CONSTRAINT entry_kind_not_null NOT NULL,
    body bytea CONSTRAINT entry_body_not_null NOT NULL,
    fence bigint DEFAULT 0 CONSTRAINT entry_fence_not_null NOT NULL
);
CREATE TABLE dragoman.entry_8 (
    session text CONSTRAINT entry_session_not_null NOT NULL COLLATE pg_catalog."C",
    sequence bigint CONSTRAINT entry_sequence_not_null NOT NULL,
    kind text CONSTRAINT entry_kind_not_null NOT NULL,
    body bytea CONSTRAINT entry_body_not_null NOT NULL,
    fence bigint DEFAULT 0 CONSTRAINT entry_fence_not_null NOT NULL
);
CREATE TABLE dragoman.entry_9 (
    session text CONSTRAINT entry_session_not_null NOT NULL COLLATE pg_catalog."C",
    sequence bigint CONSTRAINT entry_sequence_not_null NOT NULL,
    kind text CONSTRAINT entry_kind_not_null NOT NULL,
    body bytea CONSTRAINT entry_body_not_null NOT NULL,
    fence bigint DEFAULT 0 CONSTRAINT entry_fence_not_null NOT NULL
);
CREATE TABLE dragoman.login (
    cookie text NOT NULL COLLATE pg_catalog."C",
    page_key text NOT NULL,
    token text NOT NULL COLLATE pg_catalog."C",
    made timestamp with time zone NOT NULL,
    used timestamp with time zone NOT NULL
);
CREATE TABLE dragoman.login_grant (
    digest text NOT NULL COLLATE pg_catalog."C",
    body bytea NOT NULL,
    expires timestamp with time zone NOT NULL
);
CREATE TABLE dragoman.node (
    id text NOT NULL COLLATE pg_catalog."C",
    incarnation bigint NOT NULL,
    url text NOT NULL,
    expires timestamp with time zone NOT NULL,
    draining boolean DEFAULT false NOT NULL
);
CREATE TABLE dragoman.operation (
    principal text NOT NULL COLLATE pg_catalog."C",
    session text NOT NULL COLLATE pg_catalog."C",
    id text NOT NULL COLLATE pg_catalog."C",
    digest bytea NOT NULL,
    reply bytea,
    ending bytea,
    began timestamp with time zone NOT NULL
);
CREATE TABLE dragoman.place_left (
    number bigint NOT NULL,
    previous bigint NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    activity bigint NOT NULL,
    archived boolean NOT NULL
);
CREATE TABLE dragoman.question (
    id text NOT NULL COLLATE pg_catalog."C",
    agent text NOT NULL COLLATE pg_catalog."C",
    session text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL,
    node text NOT NULL COLLATE pg_catalog."C",
    incarnation bigint NOT NULL,
    state text NOT NULL,
    began timestamp with time zone NOT NULL,
    number bigint NOT NULL
);
ALTER TABLE dragoman.question ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME dragoman.question_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE dragoman.rate (
    kind text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    used bigint NOT NULL,
    noted timestamp with time zone NOT NULL
);
CREATE TABLE dragoman.secret (
    name text NOT NULL COLLATE pg_catalog."C",
    value bytea NOT NULL
);
CREATE TABLE dragoman.session (
    id text NOT NULL COLLATE pg_catalog."C",
    cwd text NOT NULL COLLATE pg_catalog."C",
    directories text NOT NULL,
    created bigint NOT NULL,
    title text NOT NULL,
    activity bigint NOT NULL,
    archived boolean NOT NULL,
    changed bigint NOT NULL,
    owner text COLLATE pg_catalog."C",
    owner_incarnation bigint,
    fence bigint NOT NULL,
    last_sequence bigint NOT NULL,
    appended bigint NOT NULL,
    home text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C"
)
WITH (fillfactor='50');
CREATE TABLE dragoman.token (
    name text NOT NULL COLLATE pg_catalog."C",
    digest text NOT NULL COLLATE pg_catalog."C",
    body bytea NOT NULL,
    number bigint NOT NULL
);
ALTER TABLE dragoman.token ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME dragoman.token_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY dragoman.entry ATTACH PARTITION dragoman.entry_0 FOR VALUES WITH (modulus 16, remainder 0);
ALTER TABLE ONLY dragoman.entry ATTACH PARTITION dragoman.entry_1 FOR VALUES WITH (modulus 16, remainder 1);
ALTER TABLE ONLY dragoman.entry ATTACH PARTITION dragoman.entry_10 FOR VALUES WITH (modulus 16, remainder 10);
ALTER TABLE ONLY dragoman.entry ATTACH PARTITION dragoman.entry_11 FOR VALUES WITH (modulus 16, remainder 11);
ALTER TABLE ONLY dragoman.entry ATTACH PARTITION dragoman.entry_12 FOR VALUES WITH (modulus 16, remainder 12);
ALTER TABLE ONLY dragoman.entry ATTACH PARTITION dragoman.entry_13 FOR VALUES WITH (modulus 16, remainder 13);
ALTER TABLE ONLY dragoman.entry ATTACH PARTITION dragoman.entry_14 FOR VALUES WITH (modulus 16, remainder 14);
ALTER TABLE ONLY dragoman.entry ATTACH PARTITION dragoman.entry_15 FOR VALUES WITH (modulus 16, remainder 15);
ALTER TABLE ONLY dragoman.entry ATTACH PARTITION dragoman.entry_2 FOR VALUES WITH (modulus 16, remainder 2);
ALTER TABLE ONLY dragoman.entry ATTACH PARTITION dragoman.entry_3 FOR VALUES WITH (modulus 16, remainder 3);
ALTER TABLE ONLY dragoman.entry ATTACH PARTITION dragoman.entry_4 FOR VALUES WITH (modulus 16, remainder 4);
ALTER TABLE ONLY dragoman.entry ATTACH PARTITION dragoman.entry_5 FOR VALUES WITH (modulus 16, remainder 5);
ALTER TABLE ONLY dragoman.entry ATTACH PARTITION dragoman.entry_6 FOR VALUES WITH (modulus 16, remainder 6);
ALTER TABLE ONLY dragoman.entry ATTACH PARTITION dragoman.entry_7 FOR VALUES WITH (modulus 16, remainder 7);
ALTER TABLE ONLY dragoman.entry ATTACH PARTITION dragoman.entry_8 FOR VALUES WITH (modulus 16, remainder 8);
ALTER TABLE ONLY dragoman.entry ATTACH PARTITION dragoman.entry_9 FOR VALUES WITH (modulus 16, remainder 9);
INSERT INTO dragoman.about VALUES (true, 3, 'e2b9f5a1924c4f508ff4d9104c2023a5', 5, 1000000005000000);
INSERT INTO dragoman.entry_15 VALUES ('killed', 1, 'note:number', '\x31', 0);
INSERT INTO dragoman.entry_15 VALUES ('killed', 2, 'note:number', '\x32', 0);
INSERT INTO dragoman.entry_15 VALUES ('killed', 3, 'note:number', '\x33', 0);
INSERT INTO dragoman.entry_9 VALUES ('named', 1, 'agent_message_chunk', '\x5b226d31222c2248656c6c6f2c20225d', 0);
INSERT INTO dragoman.entry_9 VALUES ('named', 2, 'agent_message_chunk', '\x5b226d31222c22776f726c64225d', 0);
INSERT INTO dragoman.entry_9 VALUES ('named', 3, 'note:number', '\x32', 0);
INSERT INTO dragoman.node VALUES ('one', 1, '', '2026-01-01 00:00:00+00', false);
INSERT INTO dragoman.place_left VALUES (2, 1, 'archived', 1000000000000000, false);
INSERT INTO dragoman.place_left VALUES (5, 4, 'named', 1000000002000000, false);
INSERT INTO dragoman.session VALUES ('archived', '/other', '[]', 1000000000000000, '', 1000000000000000, true, 2, NULL, NULL, 2, 0, 0, '');
INSERT INTO dragoman.session VALUES ('named', '/work', '["/more"]', 1000000002000000, 'A title', 1000000005000000, false, 5, NULL, NULL, 2, 3, 1000000004000000, '');
INSERT INTO dragoman.session VALUES ('killed', '/work', '[]', 1000000001000000, '', 1000000001000000, false, 3, 'one', 1, 1, 3, 1000000008000000, '');
SELECT pg_catalog.setval('dragoman.claim_number_seq', 1, false);
SELECT pg_catalog.setval('dragoman.question_number_seq', 1, false);
SELECT pg_catalog.setval('dragoman.token_number_seq', 1, false);
ALTER TABLE ONLY dragoman.about
    ADD CONSTRAINT about_pkey PRIMARY KEY (one);
ALTER TABLE ONLY dragoman.claim
    ADD CONSTRAINT claim_pkey PRIMARY KEY (agent, session);
ALTER TABLE ONLY dragoman.connection
    ADD CONSTRAINT connection_pkey PRIMARY KEY (id);
ALTER TABLE ONLY dragoman.entry
    ADD CONSTRAINT entry_pkey PRIMARY KEY (session, sequence);
ALTER TABLE ONLY dragoman.entry_0
    ADD CONSTRAINT entry_0_pkey PRIMARY KEY (session, sequence);
ALTER TABLE ONLY dragoman.entry_10
    ADD CONSTRAINT entry_10_pkey PRIMARY KEY (session, sequence);
ALTER TABLE ONLY dragoman.entry_11
    ADD CONSTRAINT entry_11_pkey PRIMARY KEY (session, sequence);
ALTER TABLE ONLY dragoman.entry_12
    ADD CONSTRAINT entry_12_pkey PRIMARY KEY (session, sequence);
ALTER TABLE ONLY dragoman.entry_13
    ADD CONSTRAINT entry_13_pkey PRIMARY KEY (session, sequence);
ALTER TABLE ONLY dragoman.entry_14
    ADD CONSTRAINT entry_14_pkey PRIMARY KEY (session, sequence);
ALTER TABLE ONLY dragoman.entry_15
    ADD CONSTRAINT entry_15_pkey PRIMARY KEY (session, sequence);
ALTER TABLE ONLY dragoman.entry_1
    ADD CONSTRAINT entry_1_pkey PRIMARY KEY (session, sequence);
ALTER TABLE ONLY dragoman.entry_2
    ADD CONSTRAINT entry_2_pkey PRIMARY KEY (session, sequence);
ALTER TABLE ONLY dragoman.entry_3
    ADD CONSTRAINT entry_3_pkey PRIMARY KEY (session, sequence);
ALTER TABLE ONLY dragoman.entry_4
    ADD CONSTRAINT entry_4_pkey PRIMARY KEY (session, sequence);
ALTER TABLE ONLY dragoman.entry_5
    ADD CONSTRAINT entry_5_pkey PRIMARY KEY (session, sequence);
ALTER TABLE ONLY dragoman.entry_6
    ADD CONSTRAINT entry_6_pkey PRIMARY KEY (session, sequence);
ALTER TABLE ONLY dragoman.entry_7
    ADD CONSTRAINT entry_7_pkey PRIMARY KEY (session, sequence);
ALTER TABLE ONLY dragoman.entry_8
    ADD CONSTRAINT entry_8_pkey PRIMARY KEY (session, sequence);
ALTER TABLE ONLY dragoman.entry_9
    ADD CONSTRAINT entry_9_pkey PRIMARY KEY (session, sequence);
ALTER TABLE ONLY dragoman.login_grant
    ADD CONSTRAINT login_grant_pkey PRIMARY KEY (digest);
ALTER TABLE ONLY dragoman.login
    ADD CONSTRAINT login_pkey PRIMARY KEY (cookie);
ALTER TABLE ONLY dragoman.node
    ADD CONSTRAINT node_pkey PRIMARY KEY (id);
ALTER TABLE ONLY dragoman.operation
    ADD CONSTRAINT operation_pkey PRIMARY KEY (principal, session, id);
ALTER TABLE ONLY dragoman.place_left
    ADD CONSTRAINT place_left_pkey PRIMARY KEY (number);
ALTER TABLE ONLY dragoman.question
    ADD CONSTRAINT question_pkey PRIMARY KEY (id);
ALTER TABLE ONLY dragoman.rate
    ADD CONSTRAINT rate_pkey PRIMARY KEY (kind, key);
ALTER TABLE ONLY dragoman.secret
    ADD CONSTRAINT secret_pkey PRIMARY KEY (name);
ALTER TABLE ONLY dragoman.session
    ADD CONSTRAINT session_pkey PRIMARY KEY (id);
ALTER TABLE ONLY dragoman.token
    ADD CONSTRAINT token_digest_key UNIQUE (digest);
ALTER TABLE ONLY dragoman.token
    ADD CONSTRAINT token_pkey PRIMARY KEY (name);
CREATE INDEX claim_by_agent_id ON dragoman.claim USING btree (agent, agent_id);
CREATE INDEX login_by_token ON dragoman.login USING btree (token, used);
CREATE INDEX operation_by_age ON dragoman.operation USING btree (began);
CREATE INDEX place_left_by_activity ON dragoman.place_left USING btree (archived, activity DESC, id DESC);
CREATE INDEX question_by_age ON dragoman.question USING btree (began);
CREATE INDEX question_by_session ON dragoman.question USING btree (session) WHERE (state = 'open'::text);
CREATE INDEX session_by_activity ON dragoman.session USING btree (archived, activity DESC, id DESC);
CREATE INDEX session_by_cwd ON dragoman.session USING btree (cwd, archived, activity DESC, id DESC);
CREATE INDEX session_by_owner ON dragoman.session USING btree (owner, owner_incarnation) WHERE (owner IS NOT NULL);
ALTER INDEX dragoman.entry_pkey ATTACH PARTITION dragoman.entry_0_pkey;
ALTER INDEX dragoman.entry_pkey ATTACH PARTITION dragoman.entry_10_pkey;
ALTER INDEX dragoman.entry_pkey ATTACH PARTITION dragoman.entry_11_pkey;
ALTER INDEX dragoman.entry_pkey ATTACH PARTITION dragoman.entry_12_pkey;
ALTER INDEX dragoman.entry_pkey ATTACH PARTITION dragoman.entry_13_pkey;
ALTER INDEX dragoman.entry_pkey ATTACH PARTITION dragoman.entry_14_pkey;
ALTER INDEX dragoman.entry_pkey ATTACH PARTITION dragoman.entry_15_pkey;
ALTER INDEX dragoman.entry_pkey ATTACH PARTITION dragoman.entry_1_pkey;
ALTER INDEX dragoman.entry_pkey ATTACH PARTITION dragoman.entry_2_pkey;
ALTER INDEX dragoman.entry_pkey ATTACH PARTITION dragoman.entry_3_pkey;
ALTER INDEX dragoman.entry_pkey ATTACH PARTITION dragoman.entry_4_pkey;
ALTER INDEX dragoman.entry_pkey ATTACH PARTITION dragoman.entry_5_pkey;
ALTER INDEX dragoman.entry_pkey ATTACH PARTITION dragoman.entry_6_pkey;
ALTER INDEX dragoman.entry_pkey ATTACH PARTITION dragoman.entry_7_pkey;
ALTER INDEX dragoman.entry_pkey ATTACH PARTITION dragoman.entry_8_pkey;
ALTER INDEX dragoman.entry_pkey ATTACH PARTITION dragoman.entry_9_pkey;
