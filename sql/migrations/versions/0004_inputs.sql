-- The inputs of one append are found by its number, however many the stream has.
CREATE INDEX transaction_input_by_transaction
    ON weir.transaction_input (stream_id, transaction_number);
