CREATE TABLE "message_tracking" (
	"message_id" uuid PRIMARY KEY NOT NULL,
	"open_total" bigint NOT NULL,
	"open_unique" bigint NOT NULL,
	"open_human" bigint NOT NULL,
	"open_machine" bigint NOT NULL,
	"open_first_at" bigint,
	"open_last_at" bigint,
	"opened_at" bigint,
	"last_opened_at" bigint,
	"click_total" bigint NOT NULL,
	"click_unique" bigint NOT NULL,
	"click_human" bigint NOT NULL,
	"click_machine" bigint NOT NULL,
	"click_first_at" bigint,
	"click_last_at" bigint,
	"clicked_at" bigint,
	"last_clicked_at" bigint,
	"visitors" text NOT NULL,
	"recent" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "tracking_links" (
	"message_id" uuid NOT NULL,
	"link" text NOT NULL,
	"url" text NOT NULL,
	"total" bigint NOT NULL,
	"unique" bigint NOT NULL,
	"human" bigint NOT NULL,
	"last_at" bigint NOT NULL,
	"visitors" text NOT NULL,
	CONSTRAINT "tracking_links_message_id_link_pk" PRIMARY KEY("message_id","link")
);
--> statement-breakpoint
ALTER TABLE "message_tracking" ADD CONSTRAINT "message_tracking_message_id_messages_id_fk" FOREIGN KEY ("message_id") REFERENCES "public"."messages"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "tracking_links" ADD CONSTRAINT "tracking_links_message_id_messages_id_fk" FOREIGN KEY ("message_id") REFERENCES "public"."messages"("id") ON DELETE cascade ON UPDATE no action;