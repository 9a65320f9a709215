CREATE TABLE "instance_refusals" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"provider" text NOT NULL,
	"reason" text NOT NULL,
	"paused_until" bigint NOT NULL,
	"probe_message_id" text COLLATE "C",
	"began_at" bigint NOT NULL
);
--> statement-breakpoint
ALTER TABLE "provider_configs" ADD COLUMN "trouble_since" bigint;--> statement-breakpoint
ALTER TABLE "provider_configs" ADD COLUMN "probe_message_id" text COLLATE "C";--> statement-breakpoint
CREATE INDEX "provider_configs_in_trouble" ON "provider_configs" USING btree ("id") WHERE status = 'error';