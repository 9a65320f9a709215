CREATE TABLE `message_tracking` (
	`message_id` blob PRIMARY KEY NOT NULL,
	`open_total` integer NOT NULL,
	`open_unique` integer NOT NULL,
	`open_human` integer NOT NULL,
	`open_machine` integer NOT NULL,
	`open_first_at` integer,
	`open_last_at` integer,
	`opened_at` integer,
	`last_opened_at` integer,
	`click_total` integer NOT NULL,
	`click_unique` integer NOT NULL,
	`click_human` integer NOT NULL,
	`click_machine` integer NOT NULL,
	`click_first_at` integer,
	`click_last_at` integer,
	`clicked_at` integer,
	`last_clicked_at` integer,
	`visitors` text NOT NULL,
	`recent` text NOT NULL,
	FOREIGN KEY (`message_id`) REFERENCES `messages`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE TABLE `tracking_links` (
	`message_id` blob NOT NULL,
	`link` text NOT NULL,
	`url` text NOT NULL,
	`total` integer NOT NULL,
	`unique` integer NOT NULL,
	`human` integer NOT NULL,
	`last_at` integer NOT NULL,
	`visitors` text NOT NULL,
	PRIMARY KEY(`message_id`, `link`),
	FOREIGN KEY (`message_id`) REFERENCES `messages`(`id`) ON UPDATE no action ON DELETE cascade
);
