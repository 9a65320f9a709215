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
CREATE TABLE "country_hours" (
	"project_id" uuid NOT NULL,
	"prefix" text NOT NULL,
	"hour" bigint NOT NULL,
	"sends" bigint NOT NULL,
	"most" bigint NOT NULL,
	CONSTRAINT "country_hours_project_id_prefix_hour_pk" PRIMARY KEY("project_id","prefix","hour")
);
--> statement-breakpoint
ALTER TABLE "messages" ADD COLUMN "units" bigint;--> statement-breakpoint
CREATE INDEX "message_days_by_day" ON "message_days" USING btree ("day");--> statement-breakpoint
CREATE INDEX "country_hours_by_hour" ON "country_hours" USING btree ("hour");