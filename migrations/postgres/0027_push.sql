CREATE TABLE "devices" (
	"id" uuid PRIMARY KEY NOT NULL,
	"project_id" uuid NOT NULL,
	"device_id" text NOT NULL,
	"scope" text NOT NULL,
	"user_id" text,
	"platform" text NOT NULL,
	"provider" text NOT NULL,
	"token" text NOT NULL,
	"token_hash" text NOT NULL,
	"keys" text,
	"device_name" text,
	"app_id" text,
	"app_version" text,
	"os_version" text,
	"locale" text,
	"timezone" text,
	"apns_environment" text,
	"status" text NOT NULL,
	"status_reason" text,
	"failure_count" bigint NOT NULL,
	"metadata" text NOT NULL,
	"token_at" bigint NOT NULL,
	"last_active_at" bigint NOT NULL,
	"last_success_at" bigint,
	"created_at" bigint NOT NULL,
	"updated_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "push_acks" (
	"message_id" uuid NOT NULL,
	"event" text NOT NULL,
	"project_id" uuid NOT NULL,
	"created_at" bigint NOT NULL,
	CONSTRAINT "push_acks_message_id_event_pk" PRIMARY KEY("message_id","event")
);
--> statement-breakpoint
CREATE TABLE "push_days" (
	"project_id" uuid NOT NULL,
	"day" text NOT NULL,
	"fact" text NOT NULL,
	"shard" bigint NOT NULL,
	"messages" bigint NOT NULL,
	CONSTRAINT "push_days_project_id_day_fact_shard_pk" PRIMARY KEY("project_id","day","fact","shard")
);
--> statement-breakpoint
ALTER TABLE "messages" ADD COLUMN "user_id" text;--> statement-breakpoint
CREATE INDEX "devices_by_project" ON "devices" USING btree ("project_id","id");--> statement-breakpoint
CREATE UNIQUE INDEX "devices_by_name" ON "devices" USING btree ("project_id","device_id","scope");--> statement-breakpoint
CREATE UNIQUE INDEX "devices_by_token" ON "devices" USING btree ("project_id","scope","token_hash");--> statement-breakpoint
CREATE INDEX "devices_by_user" ON "devices" USING btree ("project_id","user_id","id") WHERE user_id IS NOT NULL;--> statement-breakpoint
CREATE INDEX "push_days_by_day" ON "push_days" USING btree ("day");--> statement-breakpoint
CREATE INDEX "messages_by_user" ON "messages" USING btree ("project_id","user_id","id") WHERE user_id IS NOT NULL;--> statement-breakpoint
CREATE INDEX "messages_held_until" ON "messages" USING btree ("lease_until") WHERE state = 3 AND lease_until IS NOT NULL;