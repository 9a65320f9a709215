CREATE TABLE "general_bounces" (
	"project_id" uuid NOT NULL,
	"address" text NOT NULL,
	"first_at" bigint NOT NULL,
	"latest_at" bigint NOT NULL,
	CONSTRAINT "general_bounces_project_id_address_pk" PRIMARY KEY("project_id","address")
);
--> statement-breakpoint
ALTER TABLE "suppressions" ADD COLUMN "diagnostic" text;--> statement-breakpoint
CREATE INDEX "general_bounces_by_time" ON "general_bounces" USING btree ("latest_at");