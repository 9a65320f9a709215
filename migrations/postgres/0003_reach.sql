CREATE TABLE "dkim_keys" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"project_id" text COLLATE "C" NOT NULL,
	"domain_id" text COLLATE "C" NOT NULL,
	"selector" text NOT NULL,
	"algorithm" text NOT NULL,
	"private_key" text NOT NULL,
	"public_key" text NOT NULL,
	"state" text NOT NULL,
	"seen_at" bigint,
	"retire_at" bigint,
	"created_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "domains" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"account_id" text COLLATE "C" NOT NULL,
	"project_id" text COLLATE "C" NOT NULL,
	"domain" text NOT NULL,
	"status" text NOT NULL,
	"verification_token" text NOT NULL,
	"receiving" boolean NOT NULL,
	"tracking_subdomain" text,
	"return_path" text NOT NULL,
	"records" text NOT NULL,
	"provider_identity_status" text NOT NULL,
	"provider_dkim_status" text NOT NULL,
	"warning" text,
	"asked" text,
	"missing_since" bigint,
	"last_checked_at" bigint,
	"next_check_at" bigint,
	"window_began_at" bigint NOT NULL,
	"verified_at" bigint,
	"failed_at" bigint,
	"created_at" bigint NOT NULL,
	"updated_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "mta_sts_policies" (
	"domain" text COLLATE "C" PRIMARY KEY NOT NULL,
	"policy_id" text NOT NULL,
	"mode" text NOT NULL,
	"mx" text NOT NULL,
	"fetched_at" bigint NOT NULL,
	"expires_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "provider_configs" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"account_id" text COLLATE "C" NOT NULL,
	"project_id" text COLLATE "C" NOT NULL,
	"kind" text NOT NULL,
	"provider" text NOT NULL,
	"name" text NOT NULL,
	"priority" bigint NOT NULL,
	"enabled" boolean NOT NULL,
	"status" text NOT NULL,
	"last_error" text,
	"paused_until" bigint,
	"credentials" text,
	"settings" text NOT NULL,
	"callback_token_hash" text,
	"created_at" bigint NOT NULL,
	"updated_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "provider_receipts" (
	"config_id" text COLLATE "C" NOT NULL,
	"provider_message_id" text NOT NULL,
	"project_id" text COLLATE "C" NOT NULL,
	"message_id" text COLLATE "C" NOT NULL,
	"created_at" bigint NOT NULL,
	CONSTRAINT "provider_receipts_config_id_provider_message_id_pk" PRIMARY KEY("config_id","provider_message_id")
);
--> statement-breakpoint
CREATE TABLE "paused_queues" (
	"queue" text COLLATE "C" PRIMARY KEY NOT NULL,
	"paused_by" text,
	"paused_at" bigint NOT NULL
);
--> statement-breakpoint
ALTER TABLE "dkim_keys" ADD CONSTRAINT "dkim_keys_domain_id_domains_id_fk" FOREIGN KEY ("domain_id") REFERENCES "public"."domains"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "dkim_keys_by_selector" ON "dkim_keys" USING btree ("domain_id","selector","algorithm");--> statement-breakpoint
CREATE UNIQUE INDEX "domains_by_name" ON "domains" USING btree ("project_id","domain");--> statement-breakpoint
CREATE INDEX "domains_by_project" ON "domains" USING btree ("project_id","id");--> statement-breakpoint
CREATE INDEX "domains_of_everybody" ON "domains" USING btree ("domain");--> statement-breakpoint
CREATE UNIQUE INDEX "provider_configs_by_name" ON "provider_configs" USING btree ("project_id","kind","provider","name");--> statement-breakpoint
CREATE UNIQUE INDEX "provider_configs_by_callback" ON "provider_configs" USING btree ("callback_token_hash");--> statement-breakpoint
CREATE INDEX "provider_receipts_by_message" ON "provider_receipts" USING btree ("message_id");--> statement-breakpoint
CREATE INDEX "jobs_held" ON "jobs" USING btree ("owner","id") WHERE state = 3;