CREATE TABLE "merged_subscribers" (
	"id" uuid PRIMARY KEY NOT NULL,
	"project_id" uuid NOT NULL,
	"subscriber_id" uuid NOT NULL,
	"external_id" text NOT NULL,
	"email_key" text,
	"phone" text,
	"created_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE INDEX "merged_subscribers_by_subscriber" ON "merged_subscribers" USING btree ("subscriber_id","id");--> statement-breakpoint
CREATE INDEX "merged_subscribers_by_external_id" ON "merged_subscribers" USING btree ("project_id","external_id");--> statement-breakpoint
CREATE INDEX "merged_subscribers_by_email" ON "merged_subscribers" USING btree ("project_id","email_key") WHERE email_key IS NOT NULL;--> statement-breakpoint
CREATE INDEX "merged_subscribers_by_phone" ON "merged_subscribers" USING btree ("project_id","phone") WHERE phone IS NOT NULL;