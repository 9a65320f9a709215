ALTER TABLE "messages" ADD COLUMN "scheduled_at" bigint;--> statement-breakpoint
ALTER TABLE "messages" ADD COLUMN "template_id" uuid;--> statement-breakpoint
CREATE INDEX "messages_scheduled" ON "messages" USING btree ("project_id","id") WHERE scheduled_at IS NOT NULL;--> statement-breakpoint
CREATE INDEX "messages_by_template" ON "messages" USING btree ("project_id","template_id","id") WHERE template_id IS NOT NULL;