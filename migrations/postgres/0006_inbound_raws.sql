CREATE TABLE "inbound_raws" (
	"inbound_id" uuid PRIMARY KEY NOT NULL,
	"raw" "bytea" NOT NULL
);
--> statement-breakpoint
DROP INDEX "inbound_emails_by_sender";--> statement-breakpoint
DROP INDEX "inbound_emails_by_thread";--> statement-breakpoint
DROP INDEX "inbound_emails_by_message_id";--> statement-breakpoint
ALTER TABLE "inbound_raws" ADD CONSTRAINT "inbound_raws_inbound_id_inbound_emails_id_fk" FOREIGN KEY ("inbound_id") REFERENCES "public"."inbound_emails"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "inbound_emails_by_sender" ON "inbound_emails" USING btree ("project_id","from_email","id") WHERE from_email IS NOT NULL;--> statement-breakpoint
CREATE INDEX "inbound_emails_by_thread" ON "inbound_emails" USING btree ("project_id","thread_id","id") WHERE thread_id IS NOT NULL;--> statement-breakpoint
CREATE INDEX "inbound_emails_by_message_id" ON "inbound_emails" USING btree ("project_id","rfc_message_id") WHERE rfc_message_id IS NOT NULL;