CREATE TABLE "fan_out_contents" (
	"fan_out_id" uuid NOT NULL,
	"name" text NOT NULL,
	"content" text NOT NULL,
	CONSTRAINT "fan_out_contents_fan_out_id_name_pk" PRIMARY KEY("fan_out_id","name")
);
--> statement-breakpoint
CREATE TABLE "fan_out_parts" (
	"fan_out_id" uuid NOT NULL,
	"part" bigint NOT NULL,
	"cursor" bigint NOT NULL,
	"until" bigint NOT NULL,
	CONSTRAINT "fan_out_parts_fan_out_id_part_pk" PRIMARY KEY("fan_out_id","part")
);
--> statement-breakpoint
CREATE TABLE "fan_outs" (
	"id" uuid PRIMARY KEY NOT NULL,
	"account_id" uuid NOT NULL,
	"project_id" uuid NOT NULL,
	"kind" text NOT NULL,
	"status" text NOT NULL,
	"status_reason" text,
	"topic_id" uuid,
	"topic_key" text,
	"audience" bigint,
	"channels" text NOT NULL,
	"intent" text NOT NULL,
	"dedupe_key" text,
	"scheduled_at" bigint,
	"expires_at" bigint,
	"created_at" bigint NOT NULL,
	"started_at" bigint,
	"completed_at" bigint
);
--> statement-breakpoint
CREATE TABLE "categories" (
	"id" uuid PRIMARY KEY NOT NULL,
	"project_id" uuid NOT NULL,
	"slug" text NOT NULL,
	"name" text NOT NULL,
	"description" text,
	"critical" boolean NOT NULL,
	"default" text NOT NULL,
	"visibility" text NOT NULL,
	"channels" text NOT NULL,
	"created_at" bigint NOT NULL,
	"updated_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "subscriber_tags" (
	"project_id" uuid NOT NULL,
	"tag" text NOT NULL,
	"subscriber_id" uuid NOT NULL,
	CONSTRAINT "subscriber_tags_project_id_tag_subscriber_id_pk" PRIMARY KEY("project_id","tag","subscriber_id")
);
--> statement-breakpoint
CREATE TABLE "subscriber_words" (
	"project_id" uuid NOT NULL,
	"word" text NOT NULL,
	"subscriber_id" uuid NOT NULL,
	CONSTRAINT "subscriber_words_project_id_word_subscriber_id_pk" PRIMARY KEY("project_id","word","subscriber_id")
);
--> statement-breakpoint
CREATE TABLE "subscribers" (
	"id" uuid PRIMARY KEY NOT NULL,
	"project_id" uuid NOT NULL,
	"external_id" text NOT NULL,
	"email" text,
	"email_key" text,
	"phone" text,
	"name" text,
	"avatar_url" text,
	"locale" text,
	"timezone" text,
	"metadata" text NOT NULL,
	"tags" text NOT NULL,
	"status" text NOT NULL,
	"preferences" text,
	"auth_user_id" uuid,
	"last_seen_at" bigint,
	"created_at" bigint NOT NULL,
	"updated_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "unsubscribes" (
	"id" uuid PRIMARY KEY NOT NULL,
	"project_id" uuid NOT NULL,
	"subscriber_id" uuid NOT NULL,
	"channel" text NOT NULL,
	"category" text NOT NULL,
	"reason" text,
	"created_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "topic_members" (
	"topic_id" uuid NOT NULL,
	"number" bigint NOT NULL,
	"project_id" uuid NOT NULL,
	"subscriber_id" uuid NOT NULL,
	"created_at" bigint NOT NULL,
	CONSTRAINT "topic_members_topic_id_number_pk" PRIMARY KEY("topic_id","number")
);
--> statement-breakpoint
CREATE TABLE "topics" (
	"id" uuid PRIMARY KEY NOT NULL,
	"project_id" uuid NOT NULL,
	"key" text NOT NULL,
	"name" text NOT NULL,
	"description" text,
	"default" text NOT NULL,
	"visibility" text NOT NULL,
	"subscriber_count" bigint NOT NULL,
	"last_number" bigint NOT NULL,
	"search_key" text NOT NULL,
	"created_at" bigint NOT NULL,
	"updated_at" bigint NOT NULL
);
--> statement-breakpoint
ALTER TABLE "messages" ADD COLUMN "subscriber_id" uuid;--> statement-breakpoint
ALTER TABLE "messages" ADD COLUMN "category" text;--> statement-breakpoint
ALTER TABLE "messages" ADD COLUMN "fan_out_id" uuid;--> statement-breakpoint
CREATE INDEX "fan_outs_by_topic" ON "fan_outs" USING btree ("topic_id","id") WHERE topic_id IS NOT NULL;--> statement-breakpoint
CREATE INDEX "fan_outs_by_project" ON "fan_outs" USING btree ("project_id","id");--> statement-breakpoint
CREATE INDEX "fan_outs_by_dedupe_key" ON "fan_outs" USING btree ("topic_id","dedupe_key") WHERE dedupe_key IS NOT NULL;--> statement-breakpoint
CREATE INDEX "fan_outs_open" ON "fan_outs" USING btree ("project_id","status") WHERE completed_at IS NULL;--> statement-breakpoint
CREATE UNIQUE INDEX "categories_by_slug" ON "categories" USING btree ("project_id","slug");--> statement-breakpoint
CREATE INDEX "subscriber_tags_by_subscriber" ON "subscriber_tags" USING btree ("subscriber_id");--> statement-breakpoint
CREATE INDEX "subscriber_words_by_subscriber" ON "subscriber_words" USING btree ("subscriber_id");--> statement-breakpoint
CREATE UNIQUE INDEX "subscribers_by_external_id" ON "subscribers" USING btree ("project_id","external_id");--> statement-breakpoint
CREATE INDEX "subscribers_by_project" ON "subscribers" USING btree ("project_id","id");--> statement-breakpoint
CREATE INDEX "subscribers_by_status" ON "subscribers" USING btree ("project_id","status","id");--> statement-breakpoint
CREATE INDEX "subscribers_by_email" ON "subscribers" USING btree ("project_id","email_key","id") WHERE email_key IS NOT NULL;--> statement-breakpoint
CREATE INDEX "subscribers_by_phone" ON "subscribers" USING btree ("project_id","phone","id") WHERE phone IS NOT NULL;--> statement-breakpoint
CREATE UNIQUE INDEX "unsubscribes_by_subscriber" ON "unsubscribes" USING btree ("subscriber_id","channel","category");--> statement-breakpoint
CREATE INDEX "unsubscribes_by_project" ON "unsubscribes" USING btree ("project_id","id");--> statement-breakpoint
CREATE UNIQUE INDEX "topic_members_by_subscriber" ON "topic_members" USING btree ("subscriber_id","topic_id");--> statement-breakpoint
CREATE INDEX "topic_members_by_project" ON "topic_members" USING btree ("project_id");--> statement-breakpoint
CREATE UNIQUE INDEX "topics_by_key" ON "topics" USING btree ("project_id","key");--> statement-breakpoint
CREATE INDEX "topics_by_project" ON "topics" USING btree ("project_id","id");--> statement-breakpoint
CREATE UNIQUE INDEX "consents_by_subscriber" ON "consents" USING btree ("project_id","subscriber_id","number");--> statement-breakpoint
CREATE INDEX "messages_by_subscriber" ON "messages" USING btree ("project_id","subscriber_id","id") WHERE subscriber_id IS NOT NULL;--> statement-breakpoint
CREATE INDEX "messages_by_fan_out" ON "messages" USING btree ("project_id","fan_out_id","id") WHERE fan_out_id IS NOT NULL;