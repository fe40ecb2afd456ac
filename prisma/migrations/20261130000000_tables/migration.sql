-- Addresses are inet and cidr, never text. What must be true of all rows is a constraint here, so that
-- the database decides every race; the code maps the name of a violated constraint to its refusal.

CREATE TABLE "store" (
  "id" INTEGER NOT NULL DEFAULT 1,
  "instance" UUID NOT NULL DEFAULT gen_random_uuid(),
  "log_epoch" UUID NOT NULL DEFAULT gen_random_uuid(),
  "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  -- Events of this transaction and of older ones are no longer all there.
  "removed_up_to" XID8,
  CONSTRAINT "store_pkey" PRIMARY KEY ("id"),
  CONSTRAINT "store_is_one_row" CHECK ("id" = 1)
);
INSERT INTO "store" DEFAULT VALUES;

CREATE TABLE "project" (
  "name" TEXT NOT NULL,
  "released" BOOLEAN NOT NULL DEFAULT false,
  "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  CONSTRAINT "project_pkey" PRIMARY KEY ("name")
);

CREATE TABLE "region" (
  "id" UUID NOT NULL,
  "code" TEXT NOT NULL,
  "display_name" TEXT NOT NULL,
  "city_code" TEXT NOT NULL,
  "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  CONSTRAINT "region_pkey" PRIMARY KEY ("id")
);
CREATE UNIQUE INDEX "region_code_key" ON "region" ("code");

CREATE TABLE "cluster" (
  "id" UUID NOT NULL,
  "name" TEXT NOT NULL,
  "region_id" UUID NOT NULL,
  "context" TEXT NOT NULL,
  "mode" TEXT NOT NULL DEFAULT 'ACTIVE',
  "serves_ipv4" BOOLEAN NOT NULL DEFAULT false,
  "resolves_remote_backends" BOOLEAN NOT NULL DEFAULT false,
  "has_prober" BOOLEAN NOT NULL DEFAULT false,
  "dialect" TEXT,
  "session_affinity" BOOLEAN NOT NULL DEFAULT false,
  "unreachable_since" TIMESTAMPTZ(3),
  -- Nobody has served it since then, for long; until whoever serves it next says how it is.
  "untended_since" TIMESTAMPTZ(3),
  -- The status of all its load balancers says so.
  "untended_told" BOOLEAN NOT NULL DEFAULT false,
  -- What stands against its being served: {reason, message, since}; that it doesn't answer, too.
  "trouble" JSONB,
  "owner" TEXT,
  "lease_epoch" BIGINT NOT NULL DEFAULT 0,
  "lease_until" TIMESTAMPTZ(3),
  "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  -- An operator said that what vanished from the cluster's inventory is to be believed.
  "inventory_accepted" BOOLEAN NOT NULL DEFAULT false,
  -- Backends that were added later than this are not taken while the cluster isn't ACTIVE.
  "cordoned_since" TIMESTAMPTZ(3),
  "forgotten_at" TIMESTAMPTZ(3),
  "reachable_since" TIMESTAMPTZ(3),
  -- An operator let the sweep take what has no owner; the sweep that did so takes it back.
  "sweep_allowed_at" TIMESTAMPTZ(3),
  -- Conditions as the cluster's worker finds them: {status, reason, message, since}.
  "sweep" JSONB,
  "inventory" JSONB,
  "gateways" INTEGER,
  CONSTRAINT "cluster_pkey" PRIMARY KEY ("id"),
  CONSTRAINT "cluster_mode_known" CHECK ("mode" IN ('ACTIVE', 'CORDONED', 'DRAINED')),
  CONSTRAINT "cluster_dialect_known" CHECK ("dialect" IN ('backends', 'selector'))
);
CREATE UNIQUE INDEX "cluster_name_key" ON "cluster" ("name");
CREATE INDEX "cluster_region_id_idx" ON "cluster" ("region_id");

CREATE TABLE "vpc" (
  "id" UUID NOT NULL,
  "ref" TEXT NOT NULL,
  "name" TEXT NOT NULL,
  "project" TEXT,
  "owned" BOOLEAN NOT NULL DEFAULT false,
  "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  CONSTRAINT "vpc_pkey" PRIMARY KEY ("id")
);
CREATE UNIQUE INDEX "vpc_ref_key" ON "vpc" ("ref");
CREATE INDEX "vpc_project_name_idx" ON "vpc" ("project", "name");

CREATE TABLE "endpoint" (
  "cluster_id" UUID NOT NULL,
  "attachment_uid" TEXT NOT NULL,
  "address" INET NOT NULL,
  "vpc_id" UUID NOT NULL,
  "attachment_namespace" TEXT NOT NULL,
  "attachment_name" TEXT NOT NULL,
  "attachment_ref" TEXT NOT NULL,
  "node" TEXT NOT NULL,
  "egress_kind" TEXT NOT NULL,
  "seen_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  CONSTRAINT "endpoint_pkey" PRIMARY KEY ("cluster_id", "attachment_uid", "address"),
  CONSTRAINT "endpoint_egress_kind_known" CHECK ("egress_kind" IN ('veth', 'tap'))
);
CREATE INDEX "endpoint_vpc_id_address_idx" ON "endpoint" ("vpc_id", "address");

CREATE TABLE "address_pool" (
  "id" UUID NOT NULL,
  "name" TEXT NOT NULL,
  "region_id" UUID NOT NULL,
  "family" TEXT NOT NULL,
  "prefix" CIDR NOT NULL,
  "allocation_prefix_length" INTEGER NOT NULL,
  "state" TEXT NOT NULL DEFAULT 'ACTIVE',
  "skip_first_and_last" BOOLEAN NOT NULL DEFAULT false,
  "cool_down_seconds" INTEGER NOT NULL DEFAULT 600,
  "excluded" CIDR[] NOT NULL,
  -- IPv6: how many blocks the pool is cut into, and the numbers of those that are never handed out.
  "blocks" BIGINT NOT NULL,
  "unusable" INT8MULTIRANGE NOT NULL DEFAULT '{}',
  "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  "geometry" INTEGER NOT NULL DEFAULT 1,
  -- Numbers of blocks that were handed out before the prefix began elsewhere: their rows are there.
  "handed" INT8MULTIRANGE NOT NULL DEFAULT '{}',
  CONSTRAINT "address_pool_pkey" PRIMARY KEY ("id"),
  CONSTRAINT "address_pool_family_known" CHECK ("family" IN ('IPV4', 'IPV6')),
  CONSTRAINT "address_pool_state_known" CHECK ("state" IN ('ACTIVE', 'DISABLED')),
  CONSTRAINT "address_pool_no_overlap" EXCLUDE USING gist ("prefix" inet_ops WITH &&)
);
CREATE UNIQUE INDEX "address_pool_name_key" ON "address_pool" ("name");
CREATE INDEX "address_pool_region_id_family_idx" ON "address_pool" ("region_id", "family");

-- One counter row is held until commit and caps a pool at some 1,400 creates a second; sixteen, each
-- handing out every sixteenth block, don't.
CREATE TABLE "address_pool_counter" (
  "pool_id" UUID NOT NULL,
  "stripe" INTEGER NOT NULL,
  "next" BIGINT NOT NULL,
  "geometry" INTEGER NOT NULL DEFAULT 1,
  CONSTRAINT "address_pool_counter_pkey" PRIMARY KEY ("pool_id", "stripe")
);

CREATE TABLE "ipv6_block" (
  "prefix" CIDR NOT NULL,
  "vip" INET NOT NULL,
  "pool_id" UUID NOT NULL,
  "load_balancer_id" UUID,
  "reusable_at" TIMESTAMPTZ(3),
  CONSTRAINT "ipv6_block_pkey" PRIMARY KEY ("vip")
);
CREATE UNIQUE INDEX "ipv6_block_prefix_key" ON "ipv6_block" ("prefix");
CREATE INDEX "ipv6_block_load_balancer_id_idx" ON "ipv6_block" ("load_balancer_id");
CREATE INDEX "ipv6_block_free" ON "ipv6_block" ("pool_id", "reusable_at") WHERE "load_balancer_id" IS NULL;

CREATE TABLE "load_balancer" (
  "id" UUID NOT NULL,
  "project" TEXT NOT NULL,
  "region_id" UUID NOT NULL,
  "vpc_id" UUID NOT NULL,
  "name" TEXT NOT NULL,
  "display_name" TEXT,
  "description" TEXT,
  "labels" JSONB NOT NULL DEFAULT '[]',
  "protocol" TEXT NOT NULL,
  "port" INTEGER NOT NULL,
  "session_affinity" TEXT NOT NULL DEFAULT 'NONE',
  "health_check" JSONB NOT NULL,
  "deletion_protection" BOOLEAN NOT NULL DEFAULT false,
  "generation" INTEGER NOT NULL DEFAULT 1,
  "rules_generation" INTEGER NOT NULL DEFAULT 1,
  "version" BIGINT NOT NULL DEFAULT 1,
  "phase" TEXT NOT NULL,
  "observed_generation" INTEGER NOT NULL DEFAULT 0,
  -- Not JSONB: it is written, and mostly read, as a whole, which takes half as long where it stays text.
  "status" JSON,
  "rests_until" TIMESTAMPTZ(3),
  "deleting_since" TIMESTAMPTZ(3),
  "created_at" TIMESTAMPTZ(3) NOT NULL,
  "updated_at" TIMESTAMPTZ(3) NOT NULL,
  CONSTRAINT "load_balancer_pkey" PRIMARY KEY ("id"),
  CONSTRAINT "load_balancer_protocol_known" CHECK ("protocol" IN ('TCP', 'UDP')),
  CONSTRAINT "load_balancer_port_range" CHECK ("port" BETWEEN 1 AND 65535),
  CONSTRAINT "load_balancer_affinity_known" CHECK ("session_affinity" IN ('NONE', 'CLIENT_IP', 'CLIENT_IP_AND_PROTOCOL')),
  CONSTRAINT "load_balancer_phase_known" CHECK ("phase" IN ('PENDING', 'ACTIVE', 'DEGRADED', 'FAILED', 'IDLE', 'DELETING'))
-- Its status is written much more often than what is indexed: in a page with room no index is touched by that.
) WITH (fillfactor = 50);
-- A load balancer that is being deleted frees its name at once.
CREATE UNIQUE INDEX "load_balancer_live_name" ON "load_balancer" ("project", "region_id", "name") WHERE "deleting_since" IS NULL;
CREATE INDEX "load_balancer_project_created_at_id_idx" ON "load_balancer" ("project", "created_at", "id");
CREATE INDEX "load_balancer_vpc_id_protocol_port_idx" ON "load_balancer" ("vpc_id", "protocol", "port");

CREATE TABLE "backend" (
  "id" UUID NOT NULL,
  "load_balancer_id" UUID NOT NULL,
  "address" INET NOT NULL,
  "name" TEXT,
  "admin_state" TEXT NOT NULL DEFAULT 'ENABLED',
  "health_state" TEXT NOT NULL DEFAULT 'UNKNOWN',
  "health_reason" TEXT NOT NULL DEFAULT 'NotProbedYet',
  "health_message" TEXT NOT NULL DEFAULT '',
  "health_since" TIMESTAMPTZ(3) NOT NULL,
  -- How it came and went of late (src/domain/health/flapping.ts); null: it did not.
  "health_flaps" JSONB,
  "created_at" TIMESTAMPTZ(3) NOT NULL,
  CONSTRAINT "backend_pkey" PRIMARY KEY ("id"),
  CONSTRAINT "backend_admin_state_known" CHECK ("admin_state" IN ('ENABLED', 'STANDBY', 'DISABLED')),
  CONSTRAINT "backend_health_state_known" CHECK ("health_state" IN ('HEALTHY', 'UNHEALTHY', 'UNKNOWN', 'NOT_CHECKED'))
);
CREATE UNIQUE INDEX "backend_load_balancer_id_address_key" ON "backend" ("load_balancer_id", "address");
CREATE UNIQUE INDEX "backend_name_in_load_balancer" ON "backend" ("load_balancer_id", "name") WHERE "name" IS NOT NULL;
CREATE INDEX "backend_address_idx" ON "backend" ("address");

-- Streaks and last probe times: no transition, written in batches, lost at a crash without harm.
CREATE UNLOGGED TABLE "backend_probe" (
  "backend_id" UUID NOT NULL,
  "last_probed_at" TIMESTAMPTZ(3) NOT NULL,
  "consecutive_successes" INTEGER NOT NULL,
  "consecutive_failures" INTEGER NOT NULL,
  "last_failure" TEXT,
  CONSTRAINT "backend_probe_pkey" PRIMARY KEY ("backend_id")
);

CREATE TABLE "ipv4_reservation" (
  "id" UUID NOT NULL,
  "project" TEXT NOT NULL,
  "region_id" UUID NOT NULL,
  "name" TEXT NOT NULL,
  "display_name" TEXT,
  "description" TEXT,
  "labels" JSONB NOT NULL DEFAULT '[]',
  "address" INET NOT NULL,
  "load_balancer_id" UUID,
  "bound_at" TIMESTAMPTZ(3),
  -- The roll-up of its bindings, folded whenever one of them changes.
  "state" TEXT NOT NULL DEFAULT 'RESERVED',
  "bindings" JSONB NOT NULL DEFAULT '[]',
  "deletion_protection" BOOLEAN NOT NULL DEFAULT false,
  "generation" INTEGER NOT NULL DEFAULT 1,
  "version" BIGINT NOT NULL DEFAULT 1,
  "created_at" TIMESTAMPTZ(3) NOT NULL,
  "updated_at" TIMESTAMPTZ(3) NOT NULL,
  CONSTRAINT "ipv4_reservation_pkey" PRIMARY KEY ("id"),
  CONSTRAINT "ipv4_reservation_state_known" CHECK ("state" IN ('RESERVED', 'BINDING', 'BOUND', 'UNBINDING'))
);
CREATE UNIQUE INDEX "ipv4_reservation_name" ON "ipv4_reservation" ("project", "region_id", "name");
CREATE UNIQUE INDEX "ipv4_reservation_address_key" ON "ipv4_reservation" ("address");
CREATE INDEX "ipv4_reservation_load_balancer_id_idx" ON "ipv4_reservation" ("load_balancer_id");
CREATE INDEX "ipv4_reservation_project_created_at_id_idx" ON "ipv4_reservation" ("project", "created_at", "id");

CREATE TABLE "ipv4_address" (
  "address" INET NOT NULL,
  "pool_id" UUID NOT NULL,
  "reservation_id" UUID,
  "last_project" TEXT,
  "reusable_at" TIMESTAMPTZ(3) NOT NULL DEFAULT '-infinity',
  CONSTRAINT "ipv4_address_pkey" PRIMARY KEY ("address")
);
CREATE UNIQUE INDEX "ipv4_address_reservation_id_key" ON "ipv4_address" ("reservation_id");
CREATE INDEX "ipv4_address_free" ON "ipv4_address" ("pool_id", "reusable_at", "address") WHERE "reservation_id" IS NULL;

-- The placements are the work queue: every cause counts `asked` up and makes the row due.
CREATE TABLE "placement" (
  "load_balancer_id" UUID NOT NULL,
  "cluster_id" UUID NOT NULL,
  "placed" BOOLEAN NOT NULL,
  "asked" BIGINT NOT NULL DEFAULT 1,
  "applied" BIGINT NOT NULL DEFAULT 0,
  "due" TIMESTAMPTZ(3),
  "attempts" INTEGER NOT NULL DEFAULT 0,
  "last_error" TEXT,
  "settled_generation" INTEGER NOT NULL DEFAULT 0,
  "report" JSONB,
  "reported_at" TIMESTAMPTZ(3),
  -- Since when it is behind: kept by the trigger, since due moves with every failure.
  "due_since" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  -- Who asked, for traces: the W3C traceparent of the change that made a placement due, where that is traced.
  "trace" TEXT,
  CONSTRAINT "placement_pkey" PRIMARY KEY ("load_balancer_id", "cluster_id")
);
CREATE INDEX "placement_due" ON "placement" ("cluster_id", "due") WHERE "due" IS NOT NULL;

-- A cluster may still carry a VIP for a load balancer until its hold is closed (gone_at).
CREATE TABLE "hold" (
  "cluster_id" UUID NOT NULL,
  "vip" INET NOT NULL,
  "load_balancer_id" UUID NOT NULL,
  "rule_name" TEXT NOT NULL,
  "since" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  "gone_at" TIMESTAMPTZ(3),
  CONSTRAINT "hold_pkey" PRIMARY KEY ("load_balancer_id", "cluster_id", "vip")
);
CREATE INDEX "hold_open" ON "hold" ("vip") WHERE "gone_at" IS NULL;

CREATE TABLE "event" (
  "seq" BIGSERIAL NOT NULL,
  "xid" XID8 NOT NULL DEFAULT pg_current_xact_id(),
  "id" UUID NOT NULL DEFAULT gen_random_uuid(),
  "at" TIMESTAMPTZ(3) NOT NULL,
  "project" TEXT NOT NULL,
  "object_kind" TEXT NOT NULL,
  "object_id" UUID NOT NULL,
  "version" BIGINT NOT NULL,
  "generation" INTEGER NOT NULL,
  "reason" TEXT NOT NULL,
  "message" TEXT NOT NULL,
  "actor_kind" TEXT NOT NULL,
  "actor_name" TEXT NOT NULL,
  "changes" JSONB NOT NULL DEFAULT '[]',
  -- The whole object as it was last, in the event of its end.
  "object" JSONB,
  CONSTRAINT "event_pkey" PRIMARY KEY ("seq"),
  CONSTRAINT "event_object_kind_known" CHECK ("object_kind" IN ('LoadBalancer', 'IPv4Reservation')),
  CONSTRAINT "event_actor_kind_known" CHECK ("actor_kind" IN ('USER', 'SERVICE_ACCOUNT', 'OPERATOR', 'SYSTEM'))
);
CREATE UNIQUE INDEX "event_id_key" ON "event" ("id");
CREATE INDEX "event_xid_seq_idx" ON "event" ("xid", "seq");
CREATE INDEX "event_project_seq_idx" ON "event" ("project", "seq");
CREATE INDEX "event_object_id_seq_idx" ON "event" ("object_id", "seq");
CREATE INDEX "event_at_idx" ON "event" ("at");

-- Load balancers that what became of a cluster is about: derived anew a few at a time. asked: how often.
CREATE TABLE "derivation" (
  "load_balancer_id" UUID NOT NULL,
  "asked" INTEGER NOT NULL DEFAULT 1,
  CONSTRAINT "derivation_pkey" PRIMARY KEY ("load_balancer_id")
);

CREATE TABLE "tombstone" (
  "load_balancer_id" UUID NOT NULL,
  "rule_names" TEXT[] NOT NULL,
  "at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  CONSTRAINT "tombstone_pkey" PRIMARY KEY ("load_balancer_id")
);

CREATE TABLE "idempotency_key" (
  "project" TEXT NOT NULL,
  "mutation" TEXT NOT NULL,
  "key" TEXT NOT NULL,
  "input_hash" TEXT NOT NULL,
  "object_id" UUID NOT NULL,
  "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  CONSTRAINT "idempotency_key_pkey" PRIMARY KEY ("project", "mutation", "key")
);
CREATE INDEX "idempotency_key_created_at_idx" ON "idempotency_key" ("created_at");

CREATE TABLE "quota" (
  "project" TEXT NOT NULL,
  "resource" TEXT NOT NULL,
  "region_id" UUID NOT NULL,
  "limit" INTEGER,
  CONSTRAINT "quota_pkey" PRIMARY KEY ("project", "resource", "region_id")
);

-- What each cluster says of VPCs: a VPC is a project's only where all that show it say so.
CREATE TABLE "vpc_sighting" (
  "cluster_id" UUID NOT NULL,
  "namespace" TEXT NOT NULL,
  "name" TEXT NOT NULL,
  "ref" TEXT NOT NULL,
  "project" TEXT,
  CONSTRAINT "vpc_sighting_pkey" PRIMARY KEY ("cluster_id", "namespace", "name")
);
CREATE INDEX "vpc_sighting_ref_idx" ON "vpc_sighting" ("ref");
CREATE INDEX "ipv6_block_pool_id_idx" ON "ipv6_block" ("pool_id");

-- The last that each vantage point outside told of an address and port.
CREATE TABLE "reachability" (
  "vantage" TEXT NOT NULL,
  "address" INET NOT NULL,
  "port" INTEGER NOT NULL,
  "reachable" BOOLEAN NOT NULL,
  "message" TEXT,
  "at" TIMESTAMPTZ(3) NOT NULL,
  CONSTRAINT "reachability_pkey" PRIMARY KEY ("vantage", "address", "port")
);
CREATE INDEX "reachability_address_port_idx" ON "reachability" ("address", "port");
CREATE INDEX "hold_cluster_id_load_balancer_id_idx" ON "hold" ("cluster_id", "load_balancer_id") WHERE "gone_at" IS NULL;

-- Worker processes that live, so that each can tell its share of the clusters.
CREATE TABLE "worker" (
  "name" TEXT NOT NULL,
  "seen_at" TIMESTAMPTZ(3) NOT NULL,
  CONSTRAINT "worker_pkey" PRIMARY KEY ("name")
);

ALTER TABLE "cluster" ADD CONSTRAINT "cluster_region_id_fkey" FOREIGN KEY ("region_id") REFERENCES "region" ("id") ON DELETE RESTRICT ON UPDATE CASCADE;
ALTER TABLE "endpoint" ADD CONSTRAINT "endpoint_cluster_id_fkey" FOREIGN KEY ("cluster_id") REFERENCES "cluster" ("id") ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "address_pool" ADD CONSTRAINT "address_pool_region_id_fkey" FOREIGN KEY ("region_id") REFERENCES "region" ("id") ON DELETE RESTRICT ON UPDATE CASCADE;
ALTER TABLE "address_pool_counter" ADD CONSTRAINT "address_pool_counter_pool_id_fkey" FOREIGN KEY ("pool_id") REFERENCES "address_pool" ("id") ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "ipv4_address" ADD CONSTRAINT "ipv4_address_pool_id_fkey" FOREIGN KEY ("pool_id") REFERENCES "address_pool" ("id") ON DELETE RESTRICT ON UPDATE CASCADE;
ALTER TABLE "backend" ADD CONSTRAINT "backend_load_balancer_id_fkey" FOREIGN KEY ("load_balancer_id") REFERENCES "load_balancer" ("id") ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "placement" ADD CONSTRAINT "placement_load_balancer_id_fkey" FOREIGN KEY ("load_balancer_id") REFERENCES "load_balancer" ("id") ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "ipv4_reservation" ADD CONSTRAINT "ipv4_reservation_load_balancer_id_fkey" FOREIGN KEY ("load_balancer_id") REFERENCES "load_balancer" ("id") ON DELETE RESTRICT ON UPDATE CASCADE;
ALTER TABLE "vpc_sighting" ADD CONSTRAINT "vpc_sighting_cluster_id_fkey" FOREIGN KEY ("cluster_id") REFERENCES "cluster" ("id") ON DELETE CASCADE ON UPDATE CASCADE;
