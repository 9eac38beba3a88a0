"""Operations that processors lack, written with those that they have."""
