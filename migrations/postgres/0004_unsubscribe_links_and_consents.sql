CREATE TABLE "consents" (
	"id" uuid PRIMARY KEY NOT NULL,
	"project_id" uuid NOT NULL,
	"subscriber_id" uuid,
	"address" text,
	"number" bigint NOT NULL,
	"channel" text NOT NULL,
	"scope_type" text,
	"scope_key" text,
	"action" text NOT NULL,
	"source" text NOT NULL,
	"proof" text,
	"ip_hash" text,
	"created_at" bigint NOT NULL,
	"prev_hash" text,
	"hash" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "unsubscribe_links" (
	"id" uuid PRIMARY KEY NOT NULL,
	"project_id" uuid NOT NULL,
	"address" text NOT NULL,
	"scope_type" text NOT NULL,
	"scope_key" text,
	"created_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX "consents_by_address" ON "consents" USING btree ("project_id","address","number");--> statement-breakpoint
CREATE INDEX "consents_by_project" ON "consents" USING btree ("project_id","id");--> statement-breakpoint
CREATE INDEX "unsubscribe_links_by_address" ON "unsubscribe_links" USING btree ("project_id","address","id");