CREATE TABLE "inbox_categories" (
	"subscriber_id" uuid NOT NULL,
	"category" text NOT NULL,
	"shard" bigint NOT NULL,
	"unread" bigint NOT NULL,
	CONSTRAINT "inbox_categories_subscriber_id_category_shard_pk" PRIMARY KEY("subscriber_id","category","shard")
);
--> statement-breakpoint
CREATE TABLE "inbox_changes" (
	"subscriber_id" uuid NOT NULL,
	"seq" bigint NOT NULL,
	"position" bigint DEFAULT (pg_current_xact_id()::text)::bigint NOT NULL,
	"project_id" uuid NOT NULL,
	"kind" text NOT NULL,
	"entry_id" uuid,
	"scope" text,
	"created_at" bigint NOT NULL,
	CONSTRAINT "inbox_changes_subscriber_id_seq_pk" PRIMARY KEY("subscriber_id","seq")
);
--> statement-breakpoint
CREATE TABLE "inbox_contents" (
	"id" uuid PRIMARY KEY NOT NULL,
	"project_id" uuid NOT NULL,
	"content" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "inbox_days" (
	"project_id" uuid NOT NULL,
	"day" text NOT NULL,
	"fact" text NOT NULL,
	"shard" bigint NOT NULL,
	"messages" bigint NOT NULL,
	CONSTRAINT "inbox_days_project_id_day_fact_shard_pk" PRIMARY KEY("project_id","day","fact","shard")
);
--> statement-breakpoint
CREATE TABLE "inbox_entries" (
	"id" uuid PRIMARY KEY NOT NULL,
	"project_id" uuid NOT NULL,
	"subscriber_id" uuid NOT NULL,
	"content_id" uuid NOT NULL,
	"seq" bigint NOT NULL,
	"category" text,
	"collapse_key" text,
	"seen_at" bigint,
	"read_at" bigint,
	"archived_at" bigint,
	"snoozed_until" bigint,
	"expires_at" bigint,
	"wakes_at" bigint,
	"completed" text,
	"told" bigint NOT NULL,
	"created_at" bigint NOT NULL,
	"updated_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "inbox_tickets" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"project_id" uuid NOT NULL,
	"subscriber_id" uuid NOT NULL,
	"token_ends_at" bigint NOT NULL,
	"expires_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "inboxes" (
	"id" uuid PRIMARY KEY NOT NULL,
	"project_id" uuid NOT NULL,
	"last_seq" bigint NOT NULL,
	"unread" bigint NOT NULL,
	"unseen" bigint NOT NULL,
	"total" bigint NOT NULL
);
--> statement-breakpoint
CREATE INDEX "inbox_changes_by_position" ON "inbox_changes" USING btree ("position");--> statement-breakpoint
CREATE INDEX "inbox_changes_by_time" ON "inbox_changes" USING btree ("created_at");--> statement-breakpoint
CREATE INDEX "inbox_contents_by_project" ON "inbox_contents" USING btree ("project_id","id");--> statement-breakpoint
CREATE INDEX "inbox_days_by_day" ON "inbox_days" USING btree ("day");--> statement-breakpoint
CREATE INDEX "inbox_entries_in_sight" ON "inbox_entries" USING btree ("subscriber_id","id") WHERE archived_at IS NULL AND snoozed_until IS NULL;--> statement-breakpoint
CREATE INDEX "inbox_entries_unread" ON "inbox_entries" USING btree ("subscriber_id","id") WHERE read_at IS NULL AND archived_at IS NULL AND snoozed_until IS NULL;--> statement-breakpoint
CREATE INDEX "inbox_entries_unread_aside" ON "inbox_entries" USING btree ("subscriber_id","id") WHERE read_at IS NULL AND (archived_at IS NOT NULL OR snoozed_until IS NOT NULL);--> statement-breakpoint
CREATE INDEX "inbox_entries_archived" ON "inbox_entries" USING btree ("subscriber_id","id") WHERE archived_at IS NOT NULL;--> statement-breakpoint
CREATE INDEX "inbox_entries_snoozed" ON "inbox_entries" USING btree ("subscriber_id","id") WHERE snoozed_until IS NOT NULL;--> statement-breakpoint
CREATE INDEX "inbox_entries_by_key" ON "inbox_entries" USING btree ("subscriber_id","collapse_key","id") WHERE collapse_key IS NOT NULL AND read_at IS NULL;--> statement-breakpoint
CREATE INDEX "inbox_entries_by_content" ON "inbox_entries" USING btree ("content_id");--> statement-breakpoint
CREATE INDEX "inbox_entries_waking" ON "inbox_entries" USING btree ("wakes_at") WHERE wakes_at IS NOT NULL;--> statement-breakpoint
CREATE INDEX "inbox_tickets_by_end" ON "inbox_tickets" USING btree ("expires_at");