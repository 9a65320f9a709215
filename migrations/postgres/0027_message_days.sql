CREATE TABLE "message_days" (
	"project_id" uuid NOT NULL,
	"channel" text NOT NULL,
	"day" text NOT NULL,
	"status" text NOT NULL,
	"provider" text NOT NULL,
	"shard" bigint NOT NULL,
	"messages" bigint NOT NULL,
	"units" bigint NOT NULL,
	CONSTRAINT "message_days_project_id_channel_day_status_provider_shard_pk" PRIMARY KEY("project_id","channel","day","status","provider","shard")
);
--> statement-breakpoint
CREATE INDEX "message_days_by_day" ON "message_days" USING btree ("day");