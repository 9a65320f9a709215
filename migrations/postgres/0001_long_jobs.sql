CREATE TABLE "long_jobs" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"project_id" text COLLATE "C" NOT NULL,
	"type" text NOT NULL,
	"status" text NOT NULL,
	"total" bigint NOT NULL,
	"done" bigint NOT NULL,
	"failed" bigint NOT NULL,
	"result" text,
	"error" text,
	"created_at" bigint NOT NULL,
	"completed_at" bigint
);
--> statement-breakpoint
ALTER TABLE "api_keys" ADD COLUMN "successor_id" text COLLATE "C";--> statement-breakpoint
CREATE INDEX "long_jobs_by_project" ON "long_jobs" USING btree ("project_id","id");--> statement-breakpoint
CREATE INDEX "long_jobs_by_end" ON "long_jobs" USING btree ("completed_at");