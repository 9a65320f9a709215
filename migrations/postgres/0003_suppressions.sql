CREATE TABLE "soft_failures" (
	"project_id" uuid NOT NULL,
	"channel" text NOT NULL,
	"address" text NOT NULL,
	"message_id" uuid NOT NULL,
	"created_at" bigint NOT NULL,
	CONSTRAINT "soft_failures_project_id_channel_address_message_id_pk" PRIMARY KEY("project_id","channel","address","message_id")
);
--> statement-breakpoint
CREATE TABLE "suppressions" (
	"id" uuid PRIMARY KEY NOT NULL,
	"project_id" uuid NOT NULL,
	"channel" text NOT NULL,
	"address" text NOT NULL,
	"reason" text NOT NULL,
	"origin" text NOT NULL,
	"scope_type" text NOT NULL,
	"scope_key" text NOT NULL,
	"source_message_id" uuid,
	"note" text,
	"expires_at" bigint,
	"created_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE INDEX "soft_failures_by_time" ON "soft_failures" USING btree ("created_at");--> statement-breakpoint
CREATE UNIQUE INDEX "suppressions_by_address" ON "suppressions" USING btree ("project_id","channel","address","scope_type","scope_key");--> statement-breakpoint
CREATE INDEX "suppressions_by_project" ON "suppressions" USING btree ("project_id","id");--> statement-breakpoint
CREATE INDEX "suppressions_by_reason" ON "suppressions" USING btree ("project_id","reason","id");--> statement-breakpoint
CREATE INDEX "suppressions_by_origin" ON "suppressions" USING btree ("project_id","origin","id");--> statement-breakpoint
CREATE INDEX "suppressions_by_channel" ON "suppressions" USING btree ("project_id","channel","id");--> statement-breakpoint
CREATE INDEX "suppressions_by_expiry" ON "suppressions" USING btree ("expires_at") WHERE expires_at is not null;