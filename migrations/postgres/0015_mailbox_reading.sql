ALTER TABLE "mailbox_mails" ADD COLUMN "read_at" bigint;--> statement-breakpoint
ALTER TABLE "mailbox_mails" ADD COLUMN "attachments" bigint;--> statement-breakpoint
ALTER TABLE "mailbox_mails" ADD COLUMN "search_key" text;--> statement-breakpoint
CREATE INDEX "mailbox_mails_searched" ON "mailbox_mails" USING btree ("project_id","id","search_key");--> statement-breakpoint
CREATE INDEX "mailbox_mails_unread" ON "mailbox_mails" USING btree ("project_id","id") WHERE read_at IS NULL;